// Shows a button for a change. The button opens a dialog, which describes the effect and requests a confirmation.
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { useSpeech } from '../language/language.tsx'
import { Failure } from './states.tsx'
import { visible } from './value.tsx'

export interface Field {
  readonly name: string
  readonly label: string
  readonly type: 'email' | 'password' | 'select' | 'text'
  readonly options?: readonly string[]
  readonly isOptional?: boolean
}

export interface ActionProps {
  readonly label: string
  /** Returns the message that describes the effect. The dialog shows it before the operator confirms. */
  will(input: Input): string
  /** Returns the message that describes the result. The page shows it after the action. */
  did(input: Input): string
  readonly fields?: readonly Field[]
  run(input: Input): Promise<unknown>
  /** Called after the action, with the message that `did` returned. */
  onDone(what: string): void
  readonly isGrave?: boolean
  /** A text that the operator must type before the dialog can be submitted. */
  readonly typeToConfirm?: string
}

export type Input = Readonly<Record<string, string>>

export function Action(props: ActionProps) {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  // If the action removes its own button, the keyboard focus moves to the main content, without scrolling.
  useLayoutEffect(() => {
    const main = button.current?.closest('main')
    const goOn = () => {
      if (document.activeElement === document.body) main?.focus({ preventScroll: true })
    }
    // The cleanup runs before the button is removed. The microtask runs immediately after the removal.
    return () => queueMicrotask(goOn)
  }, [])
  return (
    <>
      <button ref={button} type="button" class={props.isGrave ? 'grave' : ''} onClick={() => setOpen(true)}>
        {props.label}
      </button>
      {isOpen && <Confirmation {...props} onClose={() => setOpen(false)} />}
    </>
  )
}

function Confirmation({
  label,
  will,
  did,
  fields = [],
  run,
  onDone,
  isGrave,
  typeToConfirm,
  onClose,
}: ActionProps & { onClose(): void }) {
  const { t } = useSpeech()
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  const opener = useRef(document.activeElement)
  const [changed, setChanged] = useState<Input>({})
  // The initial values are computed at each render, because options may be loaded after the dialog has opened.
  const initial = Object.fromEntries(fields.map(({ name, options }) => [name, options?.[0] ?? '']))
  const input: Input = { ...initial, ...changed }
  const [typed, setTyped] = useState('')
  const isConfirmed = typeToConfirm === undefined || isSameText(typed, typeToConfirm)
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  useLayoutEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    return () => {
      // While a native dialog is open, no element outside the dialog can receive the focus.
      shown?.close()
      if (opener.current instanceof HTMLElement && opener.current.isConnected) opener.current.focus()
    }
  }, [])

  async function submit(event: Event): Promise<void> {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      await run(input)
      onClose()
      onDone(did(input))
    } catch (thrown) {
      setError(thrown instanceof ApiError ? thrown : new ApiError(0, ''))
      setBusy(false)
    }
  }

  return (
    <dialog ref={dialog} aria-labelledby={`${id}-title`} aria-describedby={`${id}-will`} onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id={`${id}-title`}>{label}</h2>
        <p id={`${id}-will`}>{visible(will(input))}</p>
        {fields.map(field => (
          <FieldInput
            key={field.name}
            field={field}
            value={input[field.name] ?? ''}
            onInput={value => setChanged({ ...changed, [field.name]: value })}
          />
        ))}
        {typeToConfirm !== undefined && (
          <FieldInput
            field={{ name: '', label: visible(t('typeToConfirm', { text: typeToConfirm })), type: 'text' }}
            value={typed}
            onInput={setTyped}
          />
        )}
        {error !== undefined && (
          <p class="notice bad" role="alert">
            <Failure error={error} />
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={onClose}>
            {t('cancel')}
          </button>
          <button
            type="submit"
            class={isGrave ? 'primary grave' : 'primary'}
            disabled={isBusy || !isConfirmed}
          >
            {label}
          </button>
        </div>
      </form>
    </dialog>
  )
}

function FieldInput({
  field,
  value,
  onInput,
}: {
  field: Field
  value: string
  onInput(value: string): void
}) {
  const { label, type, options, isOptional = false } = field
  const id = useId()
  const shared = { id, value, required: !isOptional }
  const onTyped = (event: { currentTarget: HTMLInputElement }) => onInput(event.currentTarget.value)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === 'select' && (
        <select {...shared} onChange={event => onInput(event.currentTarget.value)}>
          {options?.map(option => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )}
      {type === 'password' && (
        <input {...shared} type="password" autocomplete="new-password" onInput={onTyped} />
      )}
      {type === 'email' && <input {...shared} type="email" autocomplete="off" onInput={onTyped} />}
      {type === 'text' && (
        <input {...shared} type="text" autocomplete="off" spellcheck={false} onInput={onTyped} />
      )}
    </div>
  )
}

/**
 * Returns whether the operator typed the required text. The page shows an invisible character as an escape, for example
 * `\u200b`. The operator can type either the character or the escape.
 */
function isSameText(typed: string, wanted: string): boolean {
  const text = typed.trim().normalize('NFC')
  return text === wanted.trim().normalize('NFC') || text === visible(wanted).trim().normalize('NFC')
}

/** Shows the message of the last finished action. Screen readers announce the message. */
export function Done({ what }: { what: string | undefined }) {
  return (
    <div role="status" class={what === undefined ? '' : 'done notice good'}>
      {what === undefined ? '' : visible(what)}
    </div>
  )
}
