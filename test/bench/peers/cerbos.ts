/** Cerbos with a policy that decides what the model decides. It has no data: the caller brings the members of the groups. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { type Rig, served } from './served.ts'
import type { System } from './systems.ts'

const POLICY = `apiVersion: api.cerbos.dev/v1
resourcePolicy:
  resource: doc
  version: default
  rules:
    - actions: [viewer]
      effect: EFFECT_ALLOW
      roles: [user]
      condition: {match: {expr: 'P.attr.groups.exists(group, group in R.attr.viewers)'}}
`

export async function startCerbos(binary: string, rig: Rig): Promise<System> {
  const folder = join(rig.dataDirectory, 'cerbos')
  mkdirSync(folder)
  writeFileSync(join(folder, 'doc.yaml'), POLICY)
  const [http, grpc] = [await freePort(), await freePort()]
  const settings = [
    `server.httpListenAddr=127.0.0.1:${http}`,
    `server.grpcListenAddr=127.0.0.1:${grpc}`,
    'storage.driver=disk',
    `storage.disk.directory=${folder}`,
    'telemetry.disabled=true',
  ]
  const words = ['server', '--log-level', 'error', ...settings.map((setting) => `--set=${setting}`)]
  const at = { origin: `http://127.0.0.1:${http}`, healthPath: '/_cerbos/health' }
  const { post } = await served(rig, [binary, ...words], at)
  const groups = groupsOf(rig)
  const viewers = Map.groupBy(
    rig.data.tuples.filter(({ relation }) => relation === 'viewer'),
    ({ object }) => object,
  )
  return {
    ways: [
      {
        name: 'Cerbos, data brought by the caller',
        unchecked: 'token; relationships (the caller reads and sends them: as stale as what it read)',
        async ask({ user, document }) {
          const subjects = viewers.get(document)?.map(({ subject }) => subject) ?? []
          const answer = await post('/api/check/resources', {
            principal: { id: user, roles: ['user'], attr: { groups: groups.get(`user:${user}`) ?? [] } },
            resources: [{ actions: ['viewer'], resource: { kind: 'doc', id: document, attr: { viewers: subjects } } }],
          })
          return answer.results[0].actions.viewer === 'EFFECT_ALLOW'
        },
      },
    ],
    write: async () => undefined,
    remove: null,
  }
}

/** What a service would have to look up before it asks. */
function groupsOf({ data }: Rig): ReadonlyMap<string, readonly string[]> {
  const direct = Map.groupBy(
    data.tuples.filter(({ relation }) => relation === 'member'),
    ({ subject }) => subject,
  )
  const all = (subject: string): readonly string[] =>
    (direct.get(subject) ?? []).flatMap(({ object }) => [`${object}#member`, ...all(`${object}#member`)])
  return new Map(data.tuples.flatMap(({ subject }) => (subject.startsWith('user:') ? [[subject, all(subject)]] : [])))
}
