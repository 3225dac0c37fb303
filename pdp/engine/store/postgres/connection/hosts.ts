/** The servers that a database URL names, as libpq reads it: tried in turn, and the one that takes writes is kept. */

export type Hosts = {
  /** One URL for each host. */
  readonly urls: readonly string[]
  /** For the next connection. */
  url(): string
  prefer(url: string): void
  /** The next one is tried next, unless another is preferred already. */
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

/** Throws Error, whose message continues the setting's name and repeats nothing of it. */
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
