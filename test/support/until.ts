/** Waits for a condition of another process or connection; throws after twenty seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < 20_000; ) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error('the condition did not come true')
}
