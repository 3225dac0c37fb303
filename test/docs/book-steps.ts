/**
 * What a book tells its reader to do, from the info strings of its code blocks: `sh` is run, `sh terminal` stays running,
 * `sh fails` must not succeed, a file name after the language is a file to write, and `text` is what the command before it prints.
 * The comment `Ctrl-C: COMMAND` ends what runs in a terminal, as the text beside it says.
 */

export type BookStep =
  | { readonly kind: 'end'; readonly line: number; readonly command: string }
  | { readonly kind: 'file'; readonly line: number; readonly name: string; readonly text: string }
  | {
      readonly kind: 'run'
      readonly line: number
      readonly script: string
      readonly mode: 'succeeds' | 'fails' | 'terminal'
      /** Null: not shown. `…` stands for anything. */
      printed: string | null
    }

const BLOCK = /^```(.*)\n([\s\S]*?)^```$|^<!-- Ctrl-C: (.+) -->$/gm

/** Throws for an info string that means nothing, so that no block is left out by a slip. */
export function bookSteps(page: string): readonly BookStep[] {
  const steps: BookStep[] = []
  for (const { index, 1: info = '', 2: text = '', 3: ended } of page.matchAll(BLOCK)) {
    const line = page.slice(0, index).split('\n').length
    if (ended !== undefined) {
      steps.push({ kind: 'end', line, command: ended })
      continue
    }
    const [language = '', word = ''] = info.split(' ')
    const last = steps.at(-1)
    if (language === 'sh') steps.push({ kind: 'run', line, script: text, mode: modeOf(word, line), printed: null })
    else if (language === 'text') {
      if (last?.kind !== 'run') throw new Error(`line ${line}: no command prints this`)
      last.printed = text
    } else if (word.includes('.')) steps.push({ kind: 'file', line, name: word, text })
    else if (word !== '') throw new Error(`line ${line}: what is ${info}?`)
  }
  return steps
}

function modeOf(word: string, line: number): 'succeeds' | 'fails' | 'terminal' {
  if (word === '') return 'succeeds'
  if (word === 'fails' || word === 'terminal') return word
  throw new Error(`line ${line}: what is sh ${word}?`)
}

/** Whether a command printed what the book shows. Lines are compared without the blanks at their ends. */
export function isPrinted(shown: string, printed: string): boolean {
  const lines = (text: string): string => text.replaceAll(/[ \t]+$/gm, '').trim()
  const parts = lines(shown)
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[\\s\\S]*?')}$`).test(lines(printed))
}
