/** The way to hosts outside: the proxy, and the certificate authorities. */
import { readFileSync } from 'node:fs'
import { setGlobalProxyFromEnv } from 'node:http'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { ConfigError } from './exit.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** A proxy in the form of `node:http`. There is none for http, which is called on loopback only. */
export type ProxySettings = { readonly https_proxy: string; readonly no_proxy: string }

/** Never called through a proxy: loopback, which would be the proxy's own, and names of the cluster. */
const NEAR = 'localhost,127.0.0.1,127.0.0.1-127.255.255.254,::1,[::1],.svc,.svc.cluster.local'

/** The proxy of `HTTPS_PROXY`, with `NO_PROXY` and near hosts as exceptions; null: no proxy. */
export function proxyOf(environment: { readonly [name: string]: string | undefined }): ProxySettings | null {
  const { HTTPS_PROXY = '', https_proxy = HTTPS_PROXY, NO_PROXY, no_proxy = NO_PROXY } = environment
  return https_proxy === '' ? null : { https_proxy, no_proxy: exceptions(no_proxy ?? '', NEAR) }
}

/** Joins the exceptions. `fetch` understands `*` only alone in the list. */
function exceptions(listed: string, ...added: readonly string[]): string {
  if (listed.split(/[,\s]+/).includes('*')) return '*'
  return [listed, ...added].filter((entry) => entry !== '').join(',')
}

/**
 * `fetch` goes through the proxy from now on, but to `internalHosts`. Throws ConfigError for a proxy that has no valid URL,
 * and for a network in `NO_PROXY`, which `fetch` would ignore.
 */
export function useProxy(environment: NodeJS.ProcessEnv, internalHosts: readonly string[] = []): void {
  const proxy = proxyOf(environment)
  if (proxy === null) return
  if (proxy.no_proxy.includes('/'))
    throw new ConfigError(['NO_PROXY has a network or a URL; write each name and address by itself, such as 10.96.0.1'])
  try {
    // A proxy with another protocol, such as socks5, would work only for `fetch`.
    if (!/^https?:$/.test(new URL(proxy.https_proxy).protocol)) throw new TypeError('not the protocol of a proxy')
    setGlobalProxyFromEnv({ ...proxy, no_proxy: exceptions(proxy.no_proxy, ...internalHosts) })
  } catch {
    throw new ConfigError(['HTTPS_PROXY is not the URL of a proxy, such as http://proxy.example.com:3128'])
  }
}

/**
 * Adds the authorities of `SSL_CERT_FILE`, which OpenSSL, Go and Python read, but not Node.js. Call it before the first connection.
 * Throws ConfigError when the file cannot be read or is no list of certificates.
 */
export function trustAuthorities({ SSL_CERT_FILE: path }: NodeJS.ProcessEnv): void {
  if (path === undefined || path === '') return
  const added = certificatesOf(path)
  try {
    setDefaultCACertificates([...getCACertificates('default'), ...added])
  } catch (err) {
    throw new ConfigError([`SSL_CERT_FILE: ${path} has a certificate that is not valid (${String(err)})`])
  }
}

function certificatesOf(path: string): readonly string[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([`SSL_CERT_FILE: ${path} cannot be read (${String(err)})`])
  }
  const found = text.match(CERTIFICATE)
  if (found === null) throw new ConfigError([`SSL_CERT_FILE: ${path} has no certificate in PEM form`])
  return found
}
