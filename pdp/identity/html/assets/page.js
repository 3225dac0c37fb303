/** Makes pages easier where scripts run: shows what is typed as a password, copies and prints codes. Everything works without it. */

for (const input of document.querySelectorAll('input[data-show]')) {
  const box = document.createElement('input')
  box.type = 'checkbox'
  box.autocomplete = 'off'
  const label = document.createElement('label')
  label.className = 'show'
  label.append(box, ' ', input.dataset.show)
  input.after(label)
  const fields = input.form.querySelectorAll('input[type=password]')
  const show = (isShown) => {
    for (const field of fields) field.type = isShown ? 'text' : 'password'
  }
  box.addEventListener('change', () => show(box.checked))
  // A password sent as visible text would be offered again by the browser.
  input.form.addEventListener('submit', () => show(false))
}

for (const list of document.querySelectorAll('[data-copy]')) {
  const { copy, copied, print } = list.dataset
  const said = document.createElement('small')
  said.setAttribute('aria-live', 'polite')
  const buttons = document.createElement('p')
  // Browsers have a clipboard only on secure pages (https, or this machine).
  if (navigator.clipboard !== undefined) buttons.append(button(copy, () => void copyFrom(list, said, copied)))
  buttons.append(
    button(print, () => window.print()),
    said,
  )
  list.after(buttons)
}

function button(text, act) {
  const made = document.createElement('button')
  made.type = 'button'
  made.className = 'plain'
  made.append(text)
  made.addEventListener('click', act)
  return made
}

async function copyFrom(list, said, copied) {
  const texts = [...list.querySelectorAll('code')].map(({ textContent }) => textContent)
  try {
    await navigator.clipboard.writeText(texts.join('\n'))
    said.textContent = copied
  } catch (error) {
    // The person has forbidden the clipboard, but can still copy the marked text.
    console.info(error)
    getSelection().selectAllChildren(list)
  }
}
