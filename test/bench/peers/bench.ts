/** `npm run bench -- peers`: which peers are there; `-- peers make [NAME…]` makes the missing ones, which takes long. */
import { findPeer, makePeer, PEERS, type Peer, SOURCE } from './programs.ts'

export async function bench([command, ...names]: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !PEERS.some((peer) => peer === name))
  if ((command !== undefined && command !== 'make') || unknown.length > 0) {
    console.error(`npm run bench -- peers [make [${PEERS.join(' | ')}]…]`)
    process.exitCode = 64
    return
  }
  const chosen: readonly Peer[] = PEERS.filter((peer) => names.length === 0 || names.includes(peer))
  for (const peer of chosen) {
    if (command === 'make') makePeer(peer)
    const path = findPeer(peer)
    console.log(`${peer.padEnd(14)} ${path ?? `missing: ${SOURCE[peer]}`}`)
  }
}
