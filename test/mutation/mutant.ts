/** A small fault in the code that decides, and the test files that must find it. */

export type Mutant = { readonly name: string; readonly file: string; readonly find: string; readonly replace: string }
export type Group = { readonly name: string; readonly tests: readonly string[]; readonly mutants: readonly Mutant[] }

export const inFile =
  (file: string) =>
  (name: string, find: string, replace: string): Mutant => ({ name, file, find, replace })
