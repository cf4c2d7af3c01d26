// Controls and marks that change how text around them is read: shown as what they are, never obeyed.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/** A stranger's text with everything invisible written out. */
export const visible = (text: string) =>
  // Between isolates, so that they stay in one piece within text that runs to the left.
  text.replace(HIDDEN, (found) => `\u2066\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}\u2069`)

/** A hash as people compare it. */
export const short = (version: string) => (/^[0-9a-f]{40,}$/.test(version) ? version.slice(0, 8) : version)

/** Sentences of the server with hashes cut short. */
export const shortened = (text: string) => text.replace(/\b[0-9a-f]{64}\b/g, (hash) => hash.slice(0, 8))

export const plural = (count: number, one: string, many = `${one}s`) =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`

/** Offers a text as a file. */
export function download(name: string, text: string) {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 1_000)
}
