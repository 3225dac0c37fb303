/** Writes OCI image layouts (OCI Image Format 1.1), as one archive each: what `skopeo copy`, `crane push` and `podman load` read. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const INDEX = 'application/vnd.oci.image.index.v1+json'
export const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'
export const CONFIG = 'application/vnd.oci.image.config.v1+json'

export type Descriptor = { readonly mediaType: string; readonly digest: string; readonly size: number }
/** A layer's file is compressed; `diff` is the digest of what it holds. */
export type Layer = { readonly file: string; readonly diff: string }
export type Manifest = {
  readonly platform?: { readonly os: string; readonly architecture: string }
  readonly config: { readonly mediaType: string; readonly content: object }
  readonly layers: readonly { readonly mediaType: string; readonly file: string }[]
  readonly annotations: { readonly [name: string]: string }
}

/** A folder as a layer: the same bytes for the same files, owned by root, without times. */
export function layerOf(folder: string, file: string): Layer {
  const order = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--format=posix']
  // Times of access and change would be in each entry's extended header.
  const header = '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime,delete=mtime'
  const tar = execFileSync('tar', ['--create', ...order, header, '--directory', folder, '.'], { maxBuffer: 1 << 30 })
  writeFileSync(file, gzipSync(tar, { level: 9 }))
  return { file, diff: sha256(tar) }
}

/** Writes the archive and returns the digest by which a registry names it: that of the index, or of the one manifest without a platform. */
export function writeArchive(archive: string, name: string, manifests: readonly Manifest[]): string {
  const folder = `${archive}.layout`
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  const blob = (mediaType: string, bytes: Buffer): Descriptor => {
    const digest = sha256(bytes)
    writeFileSync(join(folder, 'blobs/sha256', digest.slice('sha256:'.length)), bytes)
    return { mediaType, digest, size: bytes.length }
  }
  const json = (mediaType: string, content: object): Descriptor => blob(mediaType, Buffer.from(JSON.stringify(content)))
  const written = manifests.map(({ platform, config, layers, annotations }) => ({
    ...json(MANIFEST, {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: json(config.mediaType, config.content),
      layers: layers.map(({ mediaType, file }) => blobOf(folder, mediaType, file)),
      annotations,
    }),
    ...(platform !== undefined && { platform }),
  }))
  const [only] = written
  const root =
    written.length === 1 && only?.platform === undefined && only !== undefined
      ? only
      : json(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests: written })
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const named = { ...root, annotations: { 'org.opencontainers.image.ref.name': name } }
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [named] }))
  const order = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
  execFileSync('tar', [
    '--create',
    ...order,
    '--file',
    archive,
    '--directory',
    folder,
    'oci-layout',
    'index.json',
    'blobs',
  ])
  rmSync(folder, { recursive: true })
  return root.digest
}

function blobOf(folder: string, mediaType: string, file: string): Descriptor {
  const digest = sha256(readFileSync(file))
  copyFileSync(file, join(folder, 'blobs/sha256', digest.slice('sha256:'.length)))
  return { mediaType, digest, size: statSync(file).size }
}

export const sha256 = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
