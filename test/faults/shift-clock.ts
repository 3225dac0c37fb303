/** Loaded before a process of ours: its wall clock is before everybody else's by so much, as on a machine without NTP. */
const shiftMs = Number(process.env.FAULTS_CLOCK_SHIFT_MS ?? 0)
const { now } = Date
Date.now = () => now.call(Date) + shiftMs
globalThis.Date = new Proxy(Date, {
  construct: (target, words: unknown[], made) =>
    Reflect.construct(target, words.length === 0 ? [target.now()] : words, made),
})
