// Simulates a user who uses only the keyboard, without a pointer.
import type { Page } from 'playwright-core'

/** Presses Tab until the selected element has the focus. @throws Error after 150 presses */
export async function tabTo(page: Page, selector: string): Promise<void> {
  const wanted = page.locator(selector).and(page.locator(':focus'))
  for (let presses = 0; presses < 150; presses += 1) {
    if ((await wanted.count()) > 0) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${selector}`)
}

/** @returns whether the selected element has the focus */
export async function hasFocus(page: Page, selector: string): Promise<boolean> {
  return (await page.locator(selector).and(page.locator(':focus')).count()) > 0
}

/** @returns the HTML of the focused element, or an empty list if the focus is in the selected element or nowhere */
export async function focusOutside(page: Page, selector: string): Promise<string[]> {
  return page
    .locator(':focus')
    .evaluateAll(
      (focused, inside) => focused.filter(one => one.closest(inside) === null).map(one => one.outerHTML),
      selector,
    )
}

/**
 * Presses Tab until the focused element loses the focus. A date field has several tab stops, so it may need several
 * presses.
 */
async function leaveWithTab(page: Page): Promise<void> {
  const dateField = () =>
    page.evaluate<string | undefined>(
      "document.activeElement?.matches('input[type=date]') ? document.activeElement.dataset.stop : undefined",
    )
  const left = await dateField()
  do await page.keyboard.press('Tab')
  while (left !== undefined && (await dateField()) === left)
}

/**
 * Moves through all tab stops of a page with the Tab key.
 * @returns the problems, for example a tab stop that Tab skips, that is not visible, or that has no focus outline
 */
export async function walkWithTab(page: Page): Promise<string[]> {
  const count = await page.locator('a[href], button, input, select, summary').evaluateAll(stops => {
    const reachable = stops.filter(one => one.checkVisibility() && !one.matches(':disabled'))
    for (const [index, one] of reachable.entries()) one.setAttribute('data-stop', String(index))
    reachable[0]?.focus()
    return reachable.length
  })
  const wrong: string[] = []
  for (let index = 0; index < count; index += 1) {
    const found = await page.locator(':focus').evaluateAll(([one], wanted) => {
      if (one === undefined) return `no focus instead of stop ${wanted}`
      const told = `${one.localName} ${one.getAttribute('href') ?? one.textContent}`
      if (one.getAttribute('data-stop') !== String(wanted))
        return `${told} has the focus instead of stop ${wanted}`
      const { innerHeight, innerWidth, getComputedStyle } = one.ownerDocument.defaultView
      const { outlineStyle, outlineWidth } = getComputedStyle(one)
      if (outlineStyle === 'none' || Number.parseFloat(outlineWidth) < 2) return `${told}: no focus outline`
      const { top, bottom, left, right } = one.getBoundingClientRect()
      const isSeen = bottom > 0 && top < innerHeight && left >= 0 && right <= innerWidth + 1
      return isSeen ? '' : `${told}: not visible`
    }, index)
    if (found !== '') wrong.push(found)
    await leaveWithTab(page)
  }
  return (await hasFocus(page, `[data-stop="${count - 1}"]`))
    ? [...wrong, 'Tab does not leave the last stop']
    : wrong
}
