/** Makes an editor of the text of a model: colours, line numbers, and what the server finds wrong, at its line. */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'

const WORDS = [
  'model',
  'schema',
  'extend',
  'module',
  'type',
  'relations',
  'define',
  'condition',
  'from',
  'and',
  'or',
  'but',
  'not',
  'with',
]
/** After these stands a name that is made here. */
const MAKING = ['type', 'define', 'condition']
const CHECK_AFTER_MS = 400

const openfga = StreamLanguage.define({
  startState: () => ({ before: '', isInList: false }),
  token(stream, state) {
    if (stream.sol()) state.before = ''
    if (stream.eatSpace()) return null
    const isApart = stream.pos === 0 || /\s/.test(stream.string[stream.pos - 1])
    if (stream.peek() === '#' && isApart) {
      stream.skipToEnd()
      return 'comment'
    }
    const [word] = stream.match(/^[\w.-]+/) ?? []
    if (word === undefined) {
      const sign = stream.next()
      if (sign === '[' || sign === ']') state.isInList = sign === '['
      return null
    }
    const isMade = MAKING.includes(state.before)
    state.before = word
    if (isMade) return 'definition'
    if (state.isInList) return 'typeName'
    return WORDS.includes(word) ? 'keyword' : null
  },
  tokenTable: { definition: tags.definition(tags.name) },
})

/** By the custom properties of the page, which know the scheme that its reader chose. */
const COLOURS = [
  { tag: tags.keyword, color: 'var(--link)' },
  { tag: tags.definition(tags.name), fontWeight: '600' },
  { tag: tags.typeName, color: 'var(--good)' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
]
const theme = EditorView.theme({
  '&': {
    color: 'var(--text)',
    backgroundColor: 'var(--page)',
    border: '1px solid var(--field)',
    borderRadius: '4px',
    fontSize: '0.875rem',
    maxHeight: '40rem',
  },
  '&.cm-focused': { outline: '3px solid var(--focus)', outlineOffset: '2px' },
  '.cm-scroller': { fontFamily: 'ui-monospace, monospace', lineHeight: '1.5', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)', minHeight: '12rem' },
  '.cm-gutters': { color: 'var(--soft)', backgroundColor: 'var(--page)', borderRight: '1px solid var(--line)' },
  '.cm-tooltip': { color: 'var(--text)', backgroundColor: 'var(--card)', border: '1px solid var(--line)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  // The package's own marks are images in its styles, which the page's policy refuses.
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad)',
    textDecorationSkipInk: 'none',
  },
  '.cm-lint-marker-error': { content: 'normal' },
  '.cm-lint-marker-error::before': { content: '"✗"', color: 'var(--bad)', fontWeight: '600' },
})

for (const area of document.querySelectorAll('textarea[data-problems]')) edit(area)

/** `onChange`: told of each change. A text area may have `problems`, which finds what is wrong without the server. */
export function edit(area, { onChange = () => {} } = {}) {
  const label = document.querySelector(`label[for="${area.id}"]`)
  const found = document.createElement('div')
  found.setAttribute('aria-live', 'polite')
  found.className = 'found'
  const host = document.createElement('div')
  host.className = 'editor'
  // In a shadow tree its styles are constructed sheets, which the page's policy allows without a nonce.
  const root = host.attachShadow({ mode: 'open' })
  area.after(host, found)
  const view = new EditorView({
    doc: area.value,
    parent: root,
    root,
    extensions: [
      history(),
      lineNumbers(),
      openfga,
      syntaxHighlighting(HighlightStyle.define(COLOURS)),
      theme,
      EditorView.lineWrapping,
      // Tab leaves the editor, as it leaves every field (WCAG 2.1.2).
      keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
      lintGutter(),
      linter(({ state }) => problemsOf(area, found, state.doc), { delay: CHECK_AFTER_MS }),
      EditorView.contentAttributes.of({ 'aria-label': label.textContent, 'aria-multiline': 'true' }),
      EditorView.domEventHandlers({ beforeinput: replaceSelected }),
      EditorView.updateListener.of(({ docChanged, state }) => {
        if (!docChanged) return
        area.value = state.doc.toString()
        onChange()
      }),
    ],
  })
  // A keyboard scrolls a long text also without a cursor in it.
  view.scrollDOM.tabIndex = 0
  area.hidden = true
  label.removeAttribute('for')
  label.onclick = () => view.focus()
}

/** Over several lines the browser would edit them itself, with styles in elements, which the page's policy refuses. */
function replaceSelected(event, view) {
  if (event.inputType !== 'insertText' || event.isComposing) return false
  const { main } = view.state.selection
  // A selection that was made just now may not have been told yet.
  const { anchorNode, anchorOffset, focusNode, focusOffset } = view.root.getSelection?.() ?? {}
  const isOurs = main.empty && view.contentDOM.contains(anchorNode ?? null) && view.contentDOM.contains(focusNode)
  const ends = isOurs
    ? [view.posAtDOM(anchorNode, anchorOffset), view.posAtDOM(focusNode, focusOffset)]
    : [main.from, main.to]
  const [from, to] = [Math.min(...ends), Math.max(...ends)]
  if (from === to) return false
  const insert = view.state.toText(event.data ?? '')
  view.dispatch({
    changes: { from, to, insert },
    selection: { anchor: from + insert.length },
    userEvent: 'input.type',
    scrollIntoView: true,
  })
  return true
}

/** By the server's own parser. A check that does not come leaves the form as it is. */
async function problemsOf(area, found, doc) {
  const problems = await (area.problems?.() ?? asked(area))
  found.replaceChildren(list(problems))
  return problems.map(({ line, column, message }) => {
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines))
    const from = Math.min(at.from + Math.max(column - 1, 0), at.to)
    const word = /^[^\s,[\]()]+/.exec(at.text.slice(from - at.from))?.[0].length ?? 0
    return { from, to: from + word, severity: 'error', message }
  })
}

async function asked(area) {
  const body = new URLSearchParams(new FormData(area.form))
  body.set('action', 'problems')
  const answer = await fetch(area.dataset.problems, { method: 'POST', body }).catch(() => null)
  return answer?.headers.get('content-type')?.startsWith('application/json') ? answer.json() : []
}

function list(problems) {
  const items = document.createElement('ul')
  for (const { line, column, message } of problems) {
    const item = document.createElement('li')
    const place = document.createElement('code')
    place.textContent = `line ${line}, column ${column}`
    item.append(place, ' ', message)
    items.append(item)
  }
  return problems.length === 0 ? '' : items
}
