/** Suggests an existing name for one that does not exist. */

/** How many changes of a letter, or exchanges of two, turn one name into the other; inexact above `countMax`. */
function changesBetween(a: string, b: string, countMax: number): number {
  if (Math.abs(a.length - b.length) > countMax) return countMax + 1
  let [before, row]: readonly [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1)
      next.push(least)
    }
    before = row
    row = next
  }
  return row[b.length] ?? countMax + 1
}

/** The most similar candidate; null: all are too different. */
export function nearestName(name: string, candidates: Iterable<string>): string | null {
  const countMax = name.length < 4 ? 1 : Math.min(3, Math.ceil(name.length / 4))
  let nearest: { readonly candidate: string; readonly changes: number } | null = null
  for (const candidate of candidates) {
    const changes = changesBetween(name.toLowerCase(), candidate.toLowerCase(), countMax)
    if (candidate !== name && changes <= countMax && (nearest === null || changes < nearest.changes))
      nearest = { candidate, changes }
  }
  return nearest?.candidate ?? null
}

/** The end of a message about a name that does not exist. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const nearest = nearestName(name, candidates)
  return nearest === null ? '' : `; did you mean "${nearest}"?`
}
