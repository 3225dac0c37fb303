/** Adds what lives to pages that are whole without it: an answer that follows writes, the tail of decisions, buttons to copy. */

for (const shown of document.querySelectorAll('[data-watch]')) watch(shown)
for (const region of document.querySelectorAll('[data-tail]')) tail(region)
for (const figure of document.querySelectorAll('figure.copy')) addCopyButton(figure)
for (const id of document.querySelectorAll('.id')) addIdButton(id)
for (const time of document.querySelectorAll('time')) inZone(time)
for (const input of document.querySelectorAll('[data-suggest]')) suggest(input)
addEventListener('keydown', findByKey)
tellZone()

/** Days that somebody writes are those of the browser's zone. */
function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  // biome-ignore lint/suspicious/noDocumentCookie: no cookie store without TLS, nor in every browser
  document.cookie = `portcullis_zone=${zone}; Path=/console; Max-Age=31536000; SameSite=Lax`
  for (const shown of document.querySelectorAll('[data-zone]')) shown.textContent = zone
}

/** `/` and Ctrl-K lead to the search field from wherever nothing is being typed. */
function findByKey(event) {
  const isTyping = event.target.closest?.('input, select, textarea, [contenteditable="true"]') !== null
  const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey
  const isControlK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey
  const field = document.getElementById('find')
  if (field === null || (!isSlash && !isControlK)) return
  event.preventDefault()
  field.focus()
  field.select()
}

/** Fills the list of a field with names that begin like its text, once the typing rests. */
function suggest(input) {
  const list = input.list
  const fixed = Array.from(list.options, ({ value }) => value)
  let timer
  let asked = null
  const fill = async () => {
    const text = input.value.trim()
    if (text === asked) return
    asked = text
    const org = input.form.elements.org?.value ?? ''
    const query = new URLSearchParams({ org, for: input.dataset.suggest, text })
    const answer = await fetch(`/console/suggestions?${query}`).catch(() => null)
    if (answer?.status !== 200 || text !== asked) return
    const names = new Set([...fixed, ...(await answer.json())])
    list.replaceChildren(...Array.from(names, (value) => Object.assign(document.createElement('option'), { value })))
  }
  input.addEventListener('focus', fill)
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(fill, 150)
  })
}

function watch(heading) {
  const events = new EventSource(heading.dataset.watch)
  const note = document.createElement('span')
  note.className = 'note live'
  note.textContent = ' live'
  let first = true
  events.onopen = () => heading.after(note)
  events.onerror = () => note.remove()
  events.onmessage = ({ data }) => {
    const { verdict, state } = JSON.parse(data)
    const current = heading.querySelector('span')
    const isNew = current.textContent !== verdict
    if (isNew) {
      current.textContent = verdict
      current.className = state
      const section = heading.closest('.answer')
      section.classList.toggle('is-allowed', state === 'allowed')
      section.classList.toggle('is-denied', state !== 'allowed')
    }
    if (isNew && !first) addReload(heading)
    first = false
  }
}

function addReload(heading) {
  if (document.querySelector('.changed') !== null) return
  const hint = document.createElement('p')
  hint.className = 'changed note'
  const again = document.createElement('a')
  again.href = location.href
  again.textContent = 'Why? Show the new reason'
  hint.append('The answer has changed since the page was made. ', again)
  heading.parentElement.after(hint)
}

/** Off until somebody turns it on, because a table that moves by itself cannot be read (WCAG 2.2.2). */
function tail(region) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'plain'
  button.textContent = 'Follow live'
  button.setAttribute('aria-pressed', 'false')
  region.before(button)
  let events = null
  button.onclick = () => {
    if (events !== null) {
      events.close()
      events = null
    } else {
      events = new EventSource(region.dataset.tail)
      events.onmessage = ({ data }) => {
        const { rows, leftOut } = JSON.parse(data)
        if (leftOut > 0) addNote(region, `${leftOut} more came at once, and are not shown`)
        for (const row of rows) addRow(region, row)
      }
    }
    button.setAttribute('aria-pressed', String(events !== null))
    button.textContent = events === null ? 'Follow live' : 'Pause'
  }
}

function addRow(region, { cells, ask }) {
  const body = region.querySelector('tbody')
  if (body === null) return location.reload()
  const row = document.createElement('tr')
  for (const [i, text] of cells.entries()) {
    const cell = document.createElement('td')
    const head = region.querySelectorAll('th')[i]
    cell.className = head?.className ?? ''
    cell.dataset.title = head?.textContent ?? ''
    const holder = i === 2 && ask !== null ? document.createElement('a') : document.createElement('bdi')
    if (holder instanceof HTMLAnchorElement) holder.href = ask
    holder.textContent = text
    if (i === 3) holder.className = text.startsWith('✓') ? 'allowed' : 'denied'
    cell.append(holder)
    row.append(cell)
  }
  prepend(body, row)
}

function addNote(region, text) {
  const body = region.querySelector('tbody')
  if (body === null) return
  const row = document.createElement('tr')
  const cell = document.createElement('td')
  cell.colSpan = region.querySelectorAll('th').length
  cell.className = 'note'
  cell.textContent = text
  row.append(cell)
  prepend(body, row)
}

function prepend(body, row) {
  body.prepend(row)
  while (body.rows.length > 200) body.deleteRow(-1)
}

function addCopyButton(figure) {
  const button = copyButton('plain', ['Copy', 'Copied'], () => figure.querySelector('code').textContent)
  figure.querySelector('figcaption').append(' ', button)
}

/** An id is cut to its beginning; the button copies all of it. */
function addIdButton(id) {
  const text = id.textContent
  const button = copyButton('copy-id', ['', '✓'], () => text)
  button.setAttribute('aria-label', `Copy ${text}`)
  id.append(button)
}

function copyButton(className, [before, after], text) {
  const button = Object.assign(document.createElement('button'), { type: 'button', className, textContent: before })
  button.onclick = async () => {
    await navigator.clipboard.writeText(text())
    button.textContent = after
    setTimeout(() => {
      button.textContent = before
    }, 1500)
  }
  return button
}

/** In the reader's zone, with UTC beside; a table shows UTC to who points at it. */
function inZone(time) {
  const at = new Date(time.dateTime)
  if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) return
  const two = (number) => String(number).padStart(2, '0')
  const zone = new Intl.DateTimeFormat('en', { timeZoneName: 'short' }).formatToParts(at)
  const name = zone.find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')
  const utcDay = at.toISOString().slice(0, 10)
  const utc = `${utcDay === day ? '' : `${utcDay} `}${at.toISOString().slice(11, 19)} UTC`
  const small = Object.assign(document.createElement('small'), { textContent: utc })
  time.title = utc
  time.replaceChildren(`${day} ${clock} ${name} `, small)
}
