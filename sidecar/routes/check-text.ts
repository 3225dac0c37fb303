/** A check as a route file writes it, for people. */
import type { Check } from './checks.ts'
import type { Source, Template } from './template.ts'

export function checkText(check: Check): string {
  switch (check.kind) {
    case 'all':
    case 'any':
      return `${check.kind}: ${check.of.map((part) => ('of' in part ? `[${checkText(part)}]` : checkText(part))).join(', ')}`
    case 'relation':
      return `${check.relation} ${check.type}:${templateText(check.id)}`
    case 'signed_in':
      return 'signed_in'
    case 'permission':
    case 'entitlement':
      return `${check.kind} ${check.key}`
    case 'scope':
      return `scope ${check.name}`
    case 'equals':
      return `${sourceText(check.source)} equals ${check.value}`
  }
}

const templateText = (template: Template): string =>
  template.map((part) => (typeof part === 'string' ? part : `{${sourceText(part)}}`)).join('')

function sourceText(source: Source): string {
  if (source.from === 'path') return source.name
  return source.from === 'body' ? `body.${source.path.join('.')}` : `${source.from}.${source.name}`
}
