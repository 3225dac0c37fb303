/** YAML that came from outside, read strictly and in time that grows with its length alone. */
import { LineCounter } from 'yaml'
import { parseDocument, yamlIssues } from '../../shared/base/yaml.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'

const ALIASES_MAX = 100
const ISSUES_MAX = 100

/** Throws PdpError `request_invalid` with every issue as line:column. */
export function parseYaml(text: string): unknown {
  const lines = new LineCounter()
  const document = parseDocument(text, lines)
  const issues: ValidationIssue[] = yamlIssues(document, lines).map(({ offset, message }) => {
    const { line, col } = lines.linePos(offset)
    return { place: `${Math.max(1, line)}:${Math.max(1, col)}`, message }
  })
  if (issues.length > 0)
    throw new PdpError('request_invalid', 'the body is not valid YAML', { issues: issues.slice(0, ISSUES_MAX) })
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX })
  } catch (err) {
    throw new PdpError('request_invalid', 'the body uses its YAML aliases too often', { cause: err })
  }
}
