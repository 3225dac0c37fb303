/** What is unsafe in Envoy's ext_authz filter. */

import { get, isOn, isTrue, type Tree, textOf } from '../read/tree.ts'
import { at, type Finding, type FindingCode } from './finding.ts'

type Rule = { readonly key: string; readonly code: FindingCode; readonly message: string; readonly fix: string }

/** Each may only be absent or false. */
const OFF: readonly Rule[] = [
  {
    key: 'failure_mode_allow',
    code: 'fails_open',
    message: 'requests pass when the door does not answer',
    fix: 'set failure_mode_allow: false',
  },
  {
    key: 'clear_route_cache',
    code: 'other_bytes',
    message: 'the route is chosen again after the decision',
    fix: 'set clear_route_cache: false',
  },
  {
    key: 'filter_enabled_metadata',
    code: 'skips_question',
    message: 'only requests with some metadata are asked about',
    fix: 'remove filter_enabled_metadata',
  },
  {
    key: 'allowed_headers',
    code: 'other_bytes',
    message: 'the door sees some fields only, and cannot refuse the others',
    fix: 'remove allowed_headers',
  },
  {
    key: 'disallowed_headers',
    code: 'other_bytes',
    message: 'the door does not see fields that are forwarded',
    fix: 'remove disallowed_headers',
  },
  {
    key: 'http_service',
    code: 'other_bytes',
    message: 'over HTTP the door gets few fields, joined, and no scheme',
    fix: 'ask over grpc_service',
  },
]

/** `whole`: the filter itself, and not a patch of it. */
export function checkExtAuthz(filter: Tree, whole: boolean): readonly Finding[] {
  const off = OFF.flatMap(({ key, code, message, fix }) => {
    const value = get(filter, key)
    return isOn(value) ? [at(value)(code, message, fix)] : []
  })
  const raw = get(filter, 'encode_raw_headers')
  const hidden =
    isTrue(raw) || (raw === null && !whole)
      ? []
      : [
          at(raw ?? filter)(
            'other_bytes',
            'repeated fields come to the door joined, so that it cannot see that there were two',
            'set encode_raw_headers: true',
          ),
        ]
  return [...off, ...hidden, ...checkShare(filter), ...checkBody(filter), ...checkStatus(filter)]
}

function checkShare(filter: Tree): readonly Finding[] {
  const enabled = get(filter, 'filter_enabled')
  if (enabled === null || isTrue(get(filter, 'deny_at_disable', 'default_value'))) return []
  const fraction = get(enabled, 'default_value')
  const share = Number(textOf(get(fraction, 'numerator')) ?? 0)
  const of = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 }[
    textOf(get(fraction, 'denominator')) ?? 'HUNDRED'
  ]
  if (of !== undefined && share >= of && get(enabled, 'runtime_key') === null) return []
  return [
    at(enabled)(
      'skips_question',
      'a share of the requests is not asked about, or can be at run time',
      'remove filter_enabled, or set deny_at_disable: {default_value: true}',
    ),
  ]
}

function checkBody(filter: Tree): readonly Finding[] {
  const partial = get(filter, 'with_request_body', 'allow_partial_message')
  return isOn(partial)
    ? [at(partial)('other_bytes', 'the door judges the beginning of a body only', 'set allow_partial_message: false')]
    : []
}

function checkStatus(filter: Tree): readonly Finding[] {
  const code = get(filter, 'status_on_error', 'code')
  const text = textOf(code) ?? ''
  if (code === null || /^[45]\d\d$/.test(text) || /[a-z]/.test(text)) return []
  return [
    at(code)('fails_open', 'a failure of the door looks like a success to clients', 'set code: ServiceUnavailable'),
  ]
}
