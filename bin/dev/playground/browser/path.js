/** Paths with slashes, as the files of the page have them. */
function normal(path) {
  const parts = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `${path.startsWith('/') ? '/' : ''}${parts.join('/')}`
}
export const isAbsolute = (path) => path.startsWith('/')
export const join = (...parts) => normal(parts.filter((part) => part !== '').join('/'))
export const resolve = (...parts) => {
  const from = parts.findLastIndex(isAbsolute)
  return normal(`/${parts.slice(Math.max(from, 0)).join('/')}`)
}
export const dirname = (path) => normal(path.replace(/\/?[^/]*$/, '')) || (path.startsWith('/') ? '/' : '.')
export const basename = (path) => path.slice(path.lastIndexOf('/') + 1)
export const relative = (_from, to) => to
