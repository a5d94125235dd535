// Styles of the document's HTML page.

export const pageStyle = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --dim: #777 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 small { color: var(--dim); font-weight: normal }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) }
h3 { margin: 0 0 .5rem; font-size: 1.05rem }
h4 { margin: 1rem 0 .3rem }
nav a { margin-right: 1rem }
section { margin: 1.5rem 0; padding: 1rem; border: 1px solid var(--line); border-radius: .4rem; overflow-x: auto }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: .2em }
i { font-style: normal; font-family: ui-monospace, monospace; font-size: .85em }
b { font-family: ui-monospace, monospace; padding: .1em .5em; border-radius: .2em; color: #fff; background: #555 }
b.get { background: #1a6b3c } b.post { background: #1d4f91 } b.patch { background: #8a5a00 } b.delete { background: #a3262a }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: .5rem 0 }
th { text-align: left; color: var(--dim); font-weight: normal }
th, td { padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); vertical-align: top }
.note { color: var(--dim); margin: .3rem 0 }
`
