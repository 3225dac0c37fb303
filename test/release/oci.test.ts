/** The parts of a release that need no network; `npm run test:release` plays all of it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writeChart } from '../../bin/dev/release/chart.ts'
import { LAYER, layerOf, sha256, writeArchive } from '../../bin/dev/release/oci.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-oci-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a layer has the same bytes for the same files, whatever their times', () => {
  const made = [1, 2].map((round) => {
    const root = join(folder, `root-${round}`)
    mkdirSync(join(root, 'app'), { recursive: true })
    writeFileSync(join(root, 'app/x'), 'text')
    utimesSync(join(root, 'app/x'), round, round)
    const { file, diff } = layerOf(root, join(folder, `${round}.tgz`))
    return [diff, sha256(readFileSync(file))]
  })
  expect(made[0]).toEqual(made[1])
})

test('an archive names each blob by its digest, from the index to the layers', () => {
  const file = join(folder, 'layer.tgz')
  writeFileSync(file, 'layer')
  const manifests = ['amd64', 'arm64'].map((architecture) => ({
    platform: { os: 'linux', architecture },
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', content: { architecture } },
    layers: [{ mediaType: LAYER, file }],
    annotations: {},
  }))
  const digest = writeArchive(join(folder, 'a.oci.tar'), '1.2.3', manifests)
  execFileSync('tar', ['--extract', '--file', 'a.oci.tar'], { cwd: folder })
  const blob = (name: string): string => {
    const bytes = readFileSync(join(folder, 'blobs', name.replace(':', '/')))
    expect(sha256(bytes)).toBe(name)
    return bytes.toString()
  }
  const top = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')).manifests[0]
  expect(top).toMatchObject({ digest, annotations: { 'org.opencontainers.image.ref.name': '1.2.3' } })
  const platforms = JSON.parse(blob(digest)).manifests.map((one: { digest: string; platform: object }) => {
    const { config, layers } = JSON.parse(blob(one.digest))
    expect(blob(layers[0].digest)).toBe('layer')
    return [one.platform, JSON.parse(blob(config.digest))]
  })
  expect(platforms).toEqual(manifests.map(({ platform, config }) => [platform, config.content]))
})

test('the chart names images by digest at their registry, and is refused with an image that its values do not name', () => {
  const images = (repository: string) => ({ registry: 'r.example/acme', digests: { [repository]: 'sha256:1' } })
  writeChart(folder, folder, images('portcullis-sidecar'))
  const [name = ''] = execFileSync('sh', ['-c', 'ls *.tgz'], { cwd: folder, encoding: 'utf8' }).split('\n')
  const values = execFileSync('tar', ['-xzOf', name, 'portcullis/values.yaml'], { cwd: folder, encoding: 'utf8' })
  // The registry once, so that one value leads all images to a mirror.
  expect(values).toContain('global: {imageRegistry: "r.example/acme"}')
  expect(values.match(/registry: "", repository: portcullis-sidecar, tag: "", digest: "sha256:1"/g)).toHaveLength(2)
  expect(() => writeChart(folder, join(folder, 'other'), images('portcullis-web'))).toThrow(
    'names no image portcullis-web',
  )
})

test('a release of a commit that has no tag is refused, with the way to try it', () => {
  const { status, stderr } = spawnSync(process.execPath, ['bin/dev/release/release.ts'], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([1, expect.stringMatching(/no tag v[\d.]+.*npm run release -- --dry-run/s)])
})
