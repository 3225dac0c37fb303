/** Asks the authenticator for the answer that a page's form needs, and sends the form with it. */

for (const form of document.querySelectorAll('form[data-passkey]')) {
  form.addEventListener('submit', (event) => {
    if (event.submitter?.formNoValidate) return
    event.preventDefault()
    void answer(form)
  })
  if (form.dataset.passkey === 'get') void answer(form)
  if (form.dataset.passkey === 'autofill') void offer(form)
}

async function answer(form) {
  const problem = document.getElementById('passkey-problem')
  const button = form.querySelector('button')
  problem.hidden = true
  button.disabled = true
  try {
    const options = JSON.parse(form.dataset.options)
    const credential = form.dataset.passkey === 'create' ? await create(options) : await get(options)
    form.elements.credential.value = JSON.stringify(credential)
    form.submit()
  } catch (error) {
    // The person has cancelled, for example, or has no passkey.
    console.info(error)
    problem.hidden = false
    button.disabled = false
    button.focus()
  }
}

/** Waits until the person chooses a passkey among what the browser can fill in; most never do. */
async function offer(form) {
  try {
    if (!(await globalThis.PublicKeyCredential?.isConditionalMediationAvailable?.())) return
    const credential = await get(JSON.parse(form.dataset.options), { mediation: 'conditional' })
    form.elements.credential.value = JSON.stringify(credential)
    form.submit()
  } catch (error) {
    console.info(error)
  }
}

async function get(options, how = {}) {
  const { id, rawId, type, response } = await navigator.credentials.get({
    ...how,
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      allowCredentials: withBytes(options.allowCredentials),
    },
  })
  const { clientDataJSON, authenticatorData, signature, userHandle } = response
  return {
    ...{ id, rawId: text(rawId), type, clientExtensionResults: {} },
    response: {
      clientDataJSON: text(clientDataJSON),
      authenticatorData: text(authenticatorData),
      signature: text(signature),
      ...(userHandle === null ? {} : { userHandle: text(userHandle) }),
    },
  }
}

async function create(options) {
  const { id, rawId, type, response } = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: withBytes(options.excludeCredentials),
    },
  })
  return {
    ...{ id, rawId: text(rawId), type, clientExtensionResults: {} },
    response: {
      clientDataJSON: text(response.clientDataJSON),
      attestationObject: text(response.attestationObject),
      transports: response.getTransports?.() ?? [],
    },
  }
}

function withBytes(credentials) {
  return credentials.map((one) => ({ ...one, id: bytes(one.id) }))
}

function bytes(base64url) {
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}

function text(buffer) {
  const binary = String.fromCharCode(...new Uint8Array(buffer))
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
