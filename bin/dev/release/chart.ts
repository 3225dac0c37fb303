/** The chart as `helm package` makes it, and as the OCI artifact that `helm push` would upload (Helm 3, registries). */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { writeArchive } from './oci.ts'

const CHART = 'charts/portcullis'
export type Images = {
  /** Where the images will be, such as `ghcr.io/acme`. */
  readonly registry: string
  /** By the name of the image. */
  readonly digests: { readonly [repository: string]: string }
}

/** Writes `portcullis-VERSION.tgz` and `portcullis-chart-VERSION.oci.tar`. The chart names each image by digest, so that a tag that is moved later changes no installation. */
export function writeChart(to: string, work: string, { registry, digests }: Images): void {
  const parent = join(work, 'chart')
  mkdirSync(parent, { recursive: true })
  const folder = join(parent, 'portcullis')
  const ignored = readFileSync(join(CHART, '.helmignore'), 'utf8').trim().split('\n')
  if (!ignored.every((line) => /^[\w-]+\/$/.test(line))) throw new Error('.helmignore has another form than folders')
  cpSync(CHART, folder, { recursive: true })
  for (const name of ignored) rmSync(join(folder, name), { recursive: true })
  let values = readFileSync(join(folder, 'values.yaml'), 'utf8')
  const global = 'global: {imageRegistry: ""}'
  if (!values.includes(global)) throw new Error('values.yaml has no registry for all images')
  // For all images at once, so that an operator's mirror needs one value.
  values = values.replace(global, `global: {imageRegistry: "${registry}"}`)
  for (const [repository, digest] of Object.entries(digests)) {
    const plain = `registry: "", repository: ${repository}, tag: "", digest: ""`
    if (!values.includes(plain)) throw new Error(`values.yaml names no image ${repository}`)
    values = values.replaceAll(plain, plain.replace('digest: ""', `digest: "${digest}"`))
  }
  writeFileSync(join(folder, 'values.yaml'), values)
  const metadata: { readonly version: string } = parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8'))
  const file = join(to, `portcullis-chart-${metadata.version}.tgz`)
  const order = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
  execFileSync('tar', ['--create', '--gzip', ...order, '--file', file, '--directory', parent, 'portcullis'])
  writeArchive(file.replace(/\.tgz$/, '.oci.tar'), metadata.version, [
    {
      config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', content: metadata },
      layers: [{ mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', file }],
      annotations: {
        'org.opencontainers.image.title': 'portcullis',
        'org.opencontainers.image.version': metadata.version,
      },
    },
  ])
}
