/** A browser reduced to what a sign-in needs: cookies by path, redirects one by one, forms. */

export type PageForm = { readonly step: string; readonly html: string }
export type Answer = { readonly [field: string]: string }

export type Browser = {
  /** One request, redirects not followed. */
  send(url: string, init?: { readonly form?: Answer; readonly headers?: Answer }): Promise<Response>
  /**
   * Goes to `url` and follows redirects, answering each form, until it leaves the origin. Returns where it went.
   * Throws when a page without a form, or too many pages, come up; the page's text is in the message.
   */
  follow(url: string, answer: (page: PageForm) => Answer): Promise<URL>
  cookies(): ReadonlyMap<string, string>
}

const HOPS_MAX = 20

/** `origin`: the only place that the browser talks to. */
export function createBrowser(origin: string): Browser {
  const jar = new Map<string, { value: string; path: string }>()

  async function send(url: string, init: { form?: Answer; headers?: Answer } = {}): Promise<Response> {
    const target = new URL(url, origin)
    const cookie = [...jar]
      .filter(([, { path }]) => target.pathname === path || target.pathname.startsWith(path.replace(/\/?$/, '/')))
      .map(([key, { value }]) => `${key.split(' ', 1)[0]}=${value}`)
      .join('; ')
    const response = await fetch(target, {
      method: init.form === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: { accept: 'text/html', ...(cookie === '' ? {} : { cookie }), ...init.headers },
      ...(init.form === undefined ? {} : { body: new URLSearchParams(init.form) }),
    })
    for (const line of response.headers.getSetCookie()) keep(line)
    return response
  }

  function keep(line: string): void {
    const [pair = '', ...attributes] = line.split(/; ?/)
    const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]
    const path = attributes.find((a) => /^path=/i.test(a))?.slice('path='.length) ?? '/'
    const isOver = value === '' || attributes.some((a) => /^expires=Thu, 01 Jan 1970/i.test(a))
    if (isOver) jar.delete(`${name} ${path}`)
    else jar.set(`${name} ${path}`, { value, path })
  }

  async function follow(url: string, answer: (page: PageForm) => Answer): Promise<URL> {
    let at = new URL(url, origin)
    let response = await send(at.href)
    for (let hop = 0; hop < HOPS_MAX; hop += 1) {
      const location = response.headers.get('location')
      if (location !== null) {
        at = new URL(location, at)
        if (at.origin !== origin) return at
        response = await send(at.href)
        continue
      }
      const html = await response.text()
      const [form, step] = /<form method="post" data-step="(\w+)"[^>]*>/.exec(html) ?? []
      if (step === undefined) throw new Error(`no form at ${at.pathname}: ${response.status} ${html.slice(-600)}`)
      const action = /action="([^"]+)"/.exec(form ?? '')?.[1]
      if (action !== undefined) at = new URL(action, at)
      response = await send(at.href, { form: { ...hiddenFields(html), ...answer({ step, html }) } })
    }
    throw new Error(`no end after ${HOPS_MAX} pages`)
  }

  return {
    send,
    follow,
    cookies: () => new Map([...jar].map(([key, { value }]) => [key.split(' ', 1)[0] ?? '', value])),
  }
}

/** Of the first form of the page. */
export function hiddenFields(html: string): Answer {
  const form = html.slice(0, html.indexOf('</form>'))
  const fields = form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)
  return Object.fromEntries([...fields].map(([, name = '', value = '']) => [name, value]))
}
