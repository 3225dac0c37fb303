/** Runs kubectl with the operator's own contexts and credentials. */
import { spawnSync } from 'node:child_process'
import { ConfigError } from '../../../pdp/shared/process/exit.ts'

const OUTPUT_BYTES_MAX = 512 * 1024 * 1024

export type Kubectl = (...words: readonly string[]) => string

/** Runs the program in a context of the kubeconfig, and returns its standard output. Throws ConfigError. */
export function openKubectl(kubectl: string, context: string | undefined): Kubectl {
  const chosen = context === undefined ? [] : [`--context=${context}`]
  return (...words) => output(kubectl, [...words, ...chosen])
}

function output(kubectl: string, words: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(kubectl, words, {
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
  })
  if (error !== undefined) {
    const isMissing = 'code' in error && error.code === 'ENOENT'
    const reason = isMissing ? 'it is not installed here; --kubectl names another program' : error.message
    throw new ConfigError([`${kubectl} could not be started: ${reason}`])
  }
  if (status !== 0) throw new ConfigError([`${kubectl} failed: ${stderr.trim()}`])
  return stdout
}
