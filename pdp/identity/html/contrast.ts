/** Colours that stay readable (WCAG 2.2, success criterion 1.4.3), whatever colour was chosen. */

const RATIO_MIN = 4.6
const STEPS = 20

type Rgb = readonly [number, number, number]

/** The colour itself, or as much darker as text on the background needs it. */
export const darkened = (color: string, background: string): string => readable(color, background, [0, 0, 0])
export const lightened = (color: string, background: string): string => readable(color, background, [255, 255, 255])

function readable(color: string, background: string, toward: Rgb): string {
  for (let step = 0; step < STEPS; step += 1) {
    const mixed = mix(rgbOf(color), toward, step / STEPS)
    if (contrast(mixed, background) >= RATIO_MIN) return mixed
  }
  return hexOf(toward)
}

/** From 1 to 21. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(rgbOf(one)), luminance(rgbOf(other))].sort((a, b) => b - a)
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05)
}

function luminance(rgb: Rgb): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const rgbOf = (hex: string): Rgb => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb
const hexOf = (rgb: Rgb): string => `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`
const mix = ([r, g, b]: Rgb, to: Rgb, share: number): string =>
  hexOf([r + (to[0] - r) * share, g + (to[1] - g) * share, b + (to[2] - b) * share])
