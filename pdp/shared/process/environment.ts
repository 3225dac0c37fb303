/** Reads settings from environment variables, and reports all errors together. */
import { readFileSync } from 'node:fs'
import { messageOf } from '../base/error-message.ts'
import { fileProblem } from './command/file-problem.ts'
import { ConfigError } from './exit.ts'
import { didYouMeanSetting, unknownSettings } from './setting-names.ts'

export type EnvironmentReader = {
  /** The variable's value, or null when unset. Set but empty is an error, because it often hides a broken template. */
  text(name: string): string | null
  /** Like `text`; the value may also be in the file that `<name>_FILE` names, without its last line break. */
  secret(name: string): string | null
  /** Like `text`, parsed by `parse`, which throws Error with a message that continues the variable's name. */
  parsed<T>(name: string, parse: (text: string) => T): T | null
  /** Reports an error of several settings together, such as a contradiction. */
  report(message: string): void
}

/** Reads settings. Throws ConfigError with all errors, also for names with our prefix that no program of ours has. */
export function readEnvironment<T>(environment: NodeJS.ProcessEnv, read: (reader: EnvironmentReader) => T): T {
  const problems: string[] = []
  const known = new Set<string>()
  const report = (message: string): void => void problems.push(message)

  function text(name: string): string | null {
    known.add(name)
    const value = environment[name]
    if (value !== '') return value ?? null
    report(`${name} is set but empty`)
    return null
  }

  function secret(name: string): string | null {
    const direct = text(name)
    const path = text(`${name}_FILE`)
    if (path === null) return direct
    if (direct !== null) report(`${name} and ${name}_FILE are both set; set one`)
    return readSecretFile(`${name}_FILE`, path)
  }

  function readSecretFile(name: string, path: string): string | null {
    try {
      const content = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
      if (content !== '') return content
      report(`${name} names an empty file: ${path}`)
    } catch (err) {
      report(`${name}: ${fileProblem(path, err)}`)
    }
    return null
  }

  function parsed<V>(name: string, parse: (text: string) => V): V | null {
    const value = text(name)
    if (value === null) return null
    try {
      return parse(value)
    } catch (err) {
      report(`${name} ${messageOf(err)}`)
      return null
    }
  }

  const settings = read({ text, secret, parsed, report })
  for (const name of unknownSettings(environment)) {
    if (!known.has(name)) report(`${name} is not a known setting${didYouMeanSetting(name)}`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return settings
}

/** A parser for `parsed` that accepts only the given values. */
export function oneOf<const Values extends readonly string[]>(values: Values): (text: string) => Values[number] {
  return (text) => {
    const value = values.find((candidate) => candidate === text)
    if (value === undefined) throw new Error(`must be one of ${values.join(', ')}, not ${JSON.stringify(text)}`)
    return value
  }
}
