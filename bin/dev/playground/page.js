/** The page of the playground: files in editors, one question, the tests and the findings, all by the engine in this page. */
import { ask, play } from './engine.ts'

// The engine measures texts.
globalThis.Buffer = { byteLength: (text) => new TextEncoder().encode(text).length }
// It takes turns with the page.
const turns = new MessageChannel()
const waiting = []
turns.port1.onmessage = () => waiting.shift()?.()
globalThis.setImmediate = (run) => {
  waiting.push(run)
  turns.port2.postMessage(null)
}

const SAMPLE = `model: |
  model
    schema 1.1
  type user
  type group
    relations
      define member: [user, group#member]
  type folder
    relations
      define viewer: [user, group#member]
  type invoice
    relations
      define parent: [folder]
      define banned: [user]
      define editor: [user]
      define viewer: ([user] or editor or viewer from parent) but not banned
tuples:
  - {user: "folder:sales", relation: parent, object: "invoice:7"}
  - {user: "group:accounting#member", relation: viewer, object: "folder:sales"}
  - {user: "user:bob", relation: member, object: "group:accounting"}
  - {user: "user:eve", relation: editor, object: "invoice:7"}
  - {user: "user:eve", relation: banned, object: "invoice:7"}
tests:
  - name: accounting reads what is in the folder
    check:
      - {user: "user:bob", object: "invoice:7", assertions: {viewer: true, editor: false}}
      - {user: "user:eve", object: "invoice:7", assertions: {viewer: false}}
    list_users:
      - {object: "invoice:7", user_filter: [{type: user}], assertions: {viewer: {users: ["user:bob"]}}}
`
const byId = (id) => document.getElementById(id)
const areas = new Map()
const files = () => new Map([...areas].map(([name, area]) => [name, area.value]))

function element(tag, className, ...content) {
  const made = document.createElement(tag)
  if (className !== '') made.className = className
  made.append(...content)
  return made
}
const items = (tag, texts) => element(tag, '', ...texts.map((text) => element('li', '', element('code', '', text))))

/** What is wrong with this file, for its editor. */
async function problemsOf(name) {
  const { issues } = await play(files(), byId('main').value)
  return issues.flatMap((issue) => {
    const [, file, line, column = '1', message] = /^(.*?):(\d+)(?::(\d+))?: (.*)$/s.exec(issue) ?? []
    return file === name ? [{ line: Number(line), column: Number(column), message }] : []
  })
}

/** The editor takes each text that is marked, once its module is loaded. */
async function addFile(name, text) {
  const area = element('textarea', '')
  const id = `file-${areas.size}`
  Object.assign(area, { id, rows: 22, spellcheck: false, value: text, problems: () => problemsOf(name) })
  areas.set(name, area)
  const label = element('label', '', name)
  label.htmlFor = id
  const details = element('details', '', element('summary', '', label), area)
  details.open = true
  byId('files').append(details)
  byId('main').append(new Option(name))
  edit(area, { onChange: soon })
}

let later
function soon() {
  clearTimeout(later)
  later = setTimeout(show, 300)
}

/** An answer that was overtaken by another is not shown. */
let shown = 0
async function show() {
  const at = ++shown
  const { issues, findings, tests } = await play(files(), byId('main').value)
  const { user } = Object.fromEntries(new FormData(byId('ask')))
  const answer = issues.length > 0 || user === '' ? [] : await answered()
  if (at !== shown) return
  const failed = tests.filter(({ failure }) => failure !== null)
  byId('findings').replaceChildren(
    issues.length > 0
      ? element('div', '', element('p', 'bad', 'The files cannot be used.'), items('ul', issues))
      : findings.length > 0
        ? items('ul', findings)
        : element('p', 'note', 'Nothing found.'),
  )
  byId('tests').replaceChildren(
    element(
      'p',
      failed.length > 0 ? 'bad' : 'good',
      issues.length > 0 ? 'Not run.' : `${tests.length - failed.length} passed, ${failed.length} failed`,
    ),
    items(
      'ul',
      failed.map(({ failure }) => failure),
    ),
  )
  byId('answer').replaceChildren(...answer)
}

async function answered() {
  const { user, relation, object, context } = Object.fromEntries(new FormData(byId('ask')))
  try {
    const found = await ask(files(), byId('main').value, {
      user,
      relation,
      object,
      context: JSON.parse(context || '{}'),
    })
    if (found === null) return []
    const { allowed, path, missing, details } = found
    const word = element(
      'p',
      allowed ? 'good' : 'bad',
      `${allowed ? 'allowed' : 'denied'}: ${user} ${relation} ${object}`,
    )
    const parts = [
      [null, path],
      ['One of these would allow it:', missing],
      ['Because:', details],
    ]
    return [
      word,
      ...parts.flatMap(([title, texts]) =>
        texts.length === 0
          ? []
          : [...(title === null ? [] : [element('p', 'note', title)]), items(title === null ? 'ol' : 'ul', texts)],
      ),
    ]
  } catch (err) {
    return [element('p', 'bad', err instanceof SyntaxError ? 'The context is no JSON object.' : err.message)]
  }
}

const { edit } = await import('../../../pdp/server/console/assets/editor.js')
await addFile('store.fga.yaml', SAMPLE)
byId('open').onchange = async ({ target }) => {
  const opened = [...target.files]
  areas.clear()
  byId('files').replaceChildren()
  byId('main').replaceChildren()
  for (const file of opened) await addFile(file.name, await file.text())
  const first =
    opened.find(({ name }) => /\.fga\.ya?ml$/.test(name)) ?? opened.find(({ name }) => /\.(?:mod|fga)$/.test(name))
  if (first !== undefined) byId('main').value = first.name
  await show()
}
byId('main').onchange = show
byId('ask').onsubmit = (event) => {
  event.preventDefault()
  show()
}
// For tests of the page.
globalThis.portcullis = { play, ask }
await show()
