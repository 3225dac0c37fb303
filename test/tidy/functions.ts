/** Functions that are longer than a reader can hold in mind, with those inside them. */
import {
  createSourceFile,
  type Declaration,
  forEachChild,
  getNameOfDeclaration,
  isFunctionLike,
  type Node,
  ScriptTarget,
} from 'typescript'

const LINES_MAX = 70
const ROOT_LINES_MAX = 100
/** Composition roots: they put the parts of a program or a room together, from top to bottom, and decide nothing. */
const ROOTS: ReadonlySet<string> = new Set([
  'sidecar/runtime/runtime.ts: createRuntime',
  'pdp/engine/decision-point/create-pdp.ts: createPdp',
  'pdp/identity/endpoints.ts: createEndpoints',
  'pdp/identity/identity.ts: createIdentity',
  'pdp/server/console/console.ts: addConsole',
  'pdp/server/runtime/start.ts: compose',
  'pdp/signals/receiver/receiver.ts: startReceiver',
  'pdp/signals/transmitter/transmitter.ts: createTransmitter',
  'sidecar/runtime/sidecar.ts: createSidecar',
])

/** By file and name, in steps of ten, so that a line more in a function that is too long already does not stop anybody. */
export function longFunctions(path: string, text: string): { readonly [place: string]: number } {
  const source = createSourceFile(path, text, ScriptTarget.Latest, true)
  const lineAt = (at: number): number => source.getLineAndCharacterOfPosition(at).line
  const found: { [place: string]: number } = {}
  const visit = (node: Node): void => {
    if (isFunctionLike(node)) {
      const place = `${path}: ${nameOf(node)}`
      const count = lineAt(node.end) - lineAt(node.getStart(source)) + 1
      if (count > (ROOTS.has(place) ? ROOT_LINES_MAX : LINES_MAX)) found[place] = Math.ceil(count / 10) * 10
    }
    forEachChild(node, visit)
  }
  if (lineAt(source.end) >= LINES_MAX) visit(source)
  return found
}

/** Its own name, or the name of what it is the value of. */
function nameOf(node: Node): string {
  for (let at = node; at !== undefined; at = at.parent) {
    const name = getNameOfDeclaration(at as Declaration)
    if (name !== undefined) return name.getText()
  }
  return '(unnamed)'
}
