/** A browser's name and its client's address, kept with a session so that people recognize their own. */
import type { IncomingMessage } from 'node:http'

export type Seen = {
  /** The browser's name; null: not one that we know. */
  readonly browser: string | null
  /** An IPv4 address, or the /64 of an IPv6 address. */
  readonly address: string
}

/** How much of the field is read: the sender chooses its length, and names are at the beginning. */
const AGENT_CHARACTERS_MAX = 512
/** The first pattern that matches counts: most browsers also name Chrome or Safari. */
const BROWSERS = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d{1,4})/],
  ['Opera', /\b(?:OPR|OPiOS)\/(\d{1,4})/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d{1,4})/],
  ['Vivaldi', /\bVivaldi\/(\d{1,4})/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d{1,4})/],
  ['Chrome', /\b(?:Chrome|Chromium|HeadlessChrome|CriOS)\/(\d{1,4})/],
  ['Safari', /\bVersion\/(\d{1,4})[\d.]* (?:Mobile\/\w{1,16} )?Safari\//],
] as const
const SYSTEMS = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows NT\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['macOS', /\bMacintosh\b/],
  ['Linux', /\bLinux\b/],
] as const

/** A name such as `Firefox 128, Windows`. It has only our own words and a number, so that no foreign text is shown. */
export function browserName(agent: string | undefined): string | null {
  const text = (agent ?? '').slice(0, AGENT_CHARACTERS_MAX)
  const browser = BROWSERS.flatMap(([name, pattern]) => {
    const version = pattern.exec(text)?.[1]
    return version === undefined ? [] : [`${name} ${version}`]
  })[0]
  const system = SYSTEMS.find(([, pattern]) => pattern.test(text))?.[0]
  return browser === undefined ? (system ?? null) : system === undefined ? browser : `${browser}, ${system}`
}

export const seenFrom = ({ headers }: Pick<IncomingMessage, 'headers'>, address: string): Seen => ({
  browser: browserName(headers['user-agent']),
  address,
})
