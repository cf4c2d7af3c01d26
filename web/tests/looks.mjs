// How the page looks: pictures of every screen, to be looked at (`target/screenshots`), and what is wrong with them.
import { mkdirSync } from 'node:fs'
import { findings } from './harness.mjs'

const FOLDER = new URL('../../target/screenshots/', import.meta.url).pathname
mkdirSync(FOLDER, { recursive: true })

/** Where it is read: at a desk and on a telephone, by day and by night. */
export const LOOKS = [
  { width: 1280, height: 800, scheme: 'light' },
  { width: 1280, height: 800, scheme: 'dark' },
  { width: 390, height: 844, scheme: 'light' },
  { width: 390, height: 844, scheme: 'dark' },
]

/** Takes a picture, and says what is serious to axe, in the dialog if one is open, and what is cut off. */
export async function portray(page, name, options = {}) {
  const { width } = page.viewportSize()
  const seen = await page.evaluate(() => ({
    scheme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
    wide: document.documentElement.scrollWidth,
    cut: [...document.querySelectorAll('.table')].filter((table) => table.scrollWidth > table.clientWidth).map((table) => table.ariaLabel),
    part: document.querySelector('dialog[open]') ? 'dialog' : undefined,
    // The link of the page that is shown, in a bar that is wider than a telephone.
    here: document.querySelector('.top nav [aria-current]')?.getBoundingClientRect().toJSON(),
  }))
  await page.screenshot({ path: `${FOLDER}${name}-${width}-${seen.scheme}.png`, ...options })
  const found = await findings(page, seen.part)
  if (seen.wide > width) found.push(`it is ${seen.wide} px wide`)
  for (const table of seen.cut) found.push(`the table ${table} is cut off`)
  if (seen.here && (seen.here.left < 0 || seen.here.right > width)) found.push(`where one is is cut off, from ${seen.here.left} to ${seen.here.right}`)
  return found.map((finding) => `${name}, ${width} px, ${seen.scheme}: ${finding}`)
}
