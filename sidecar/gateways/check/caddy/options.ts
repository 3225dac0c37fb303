/** What is unsafe among the global options of a Caddyfile. */
import type { Segment } from '../../read/caddyfile.ts'
import { at, type Finding } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { ORDER } from './order.ts'
import { isReplaced, words } from './words.ts'

const HARMLESS =
  words(`acme_ca acme_ca_root acme_dns acme_eab auto_https cert_issuer cert_lifetime debug default_bind default_sni dns ech email
  events fallback_sni filesystem grace_period http_port https_port key_type local_certs log metrics ocsp_interval ocsp_stapling on_demand_tls
  persist_config pki preferred_chains renew_interval renewal_window_ratio shutdown_delay skip_install_trust storage storage_check
  storage_clean_interval tls_resolvers`)
const OF_SERVER =
  words(`0rtt client_ip_headers enable_full_duplex keepalive_count keepalive_idle keepalive_interval log_credentials max_header_size
  metrics name protocols strict_sni_host timeouts trace trusted_proxies_strict trusted_proxies_unix`)
const WRAPPERS = words('tls http_redirect proxy_protocol')

export const checkOptions = (options: readonly Segment[]): readonly Finding[] => options.flatMap(checkOption)

function checkOption(option: Segment): readonly Finding[] {
  const [name = '', first = ''] = option.words
  const here = at(option)
  if (HARMLESS.has(name)) return []
  if (name === 'order')
    return ORDER.includes(first) || option.words.includes('forward_auth')
      ? [here('skips_question', `the order of ${first} is changed`, 'remove the option, or use route')]
      : []
  if (name === 'admin') return isOwn(first) ? [] : [here('forgeable', ADMIN, ADMIN_FIX)]
  if (name === 'servers') return (option.block ?? []).flatMap(checkServer)
  return [here('unseen', `the option ${name} is not known here: it may route`, 'judge it by hand')]
}

export const ADMIN = 'others than this machine may load another configuration'
export const ADMIN_FIX = 'let admin listen at localhost or a unix socket, or say off'

/** Of the administration: who reaches it may change what is asked. */
export const isOwn = (address: string): boolean =>
  address === '' || /^(off$|unix\/|(tcp\/)?(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|$))/.test(address)

function checkServer(option: Segment): readonly Finding[] {
  const [name = '', first = ''] = option.words
  const here = at(option)
  if (OF_SERVER.has(name)) return []
  if (name === 'trusted_proxies') {
    if (option.words.some(isEverybody))
      return [here('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies')]
    const source = first === 'static' && !option.words.some(isReplaced)
    return source
      ? []
      : [
          here(
            'unseen',
            `whom Caddy believes is not in the file: ${option.words.slice(1).join(' ')}`,
            'name your proxies',
          ),
        ]
  }
  if (name === 'listener_wrappers')
    return (option.block ?? [])
      .filter(({ words: [wrapper = ''] }) => !WRAPPERS.has(wrapper))
      .map((one) => at(one)('unseen', `${one.words[0]} may pass connections on`, 'judge it by hand'))
  return [here('unseen', `${name} is not known here: it may pass connections on`, 'judge it by hand')]
}
