/** The servers that a database URL names, read as libpq does. They are tried in turn, until one takes writes. */

export type Hosts = {
  /** One URL for each host. */
  readonly urls: readonly string[]
  /** The URL for the next connection. */
  url(): string
  prefer(url: string): void
  /** Moves on to the host after this one, unless another is preferred already. */
  leave(url: string): void
}

export function createHosts(connectionString: string): Hosts {
  const urls = urlsOf(connectionString)
  let at = 0
  return {
    urls,
    url: () => urls[at] ?? connectionString,
    prefer(url) {
      at = Math.max(0, urls.indexOf(url))
    },
    leave(url) {
      if (urls[at] === url) at = (at + 1) % urls.length
    },
  }
}

/** Throws Error. Its message continues a sentence that begins with the setting's name, and repeats nothing of the URL. */
export function assertDatabaseUrl(text: string): void {
  for (const one of urlsOf(text)) {
    const url = URL.parse(one)
    if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol) || (url.hostname === '' && one !== text))
      throw new Error(
        'must be a URL such as postgresql://user:password@host:5432/database, also with several host:port',
      )
    const wanted = url.searchParams.get('target_session_attrs') ?? 'read-write'
    if (wanted !== 'read-write' && wanted !== 'primary')
      throw new Error('must have target_session_attrs=read-write, or none: a standby answers nothing')
  }
}

function urlsOf(text: string): readonly string[] {
  const [, scheme = '', authority = '', rest = ''] = /^([a-z]+:\/\/)([^/?#]*)(.*)$/s.exec(text) ?? []
  const account = authority.slice(0, authority.lastIndexOf('@') + 1)
  const hosts = authority.slice(account.length).split(',')
  return hosts.length === 1 ? [text] : hosts.map((host) => `${scheme}${account}${host}${rest}`)
}
