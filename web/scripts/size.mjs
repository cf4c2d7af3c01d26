// Writes every file a second time, compressed, for the server to send. Fails if what a browser loads before it shows the list of runs
// is larger than promised.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

const LIMIT_KIB = 350
const manifest = JSON.parse(readFileSync('dist/.vite/manifest.json', 'utf8'))

for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(entry.name)) continue
  const path = `${entry.parentPath}/${entry.name}`
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }))
}

/** Everything that a module loads with it, not later. */
function files(name, seen = new Set()) {
  if (seen.has(name)) return []
  seen.add(name)
  const { file, css = [], imports = [] } = manifest[name]
  return [file, ...css, ...imports.flatMap((next) => files(next, seen))]
}

// The list of runs is a chunk of its own, asked for at once.
const first = Object.keys(manifest).filter((name) => manifest[name].isEntry || name === 'src/runs/RunsPage.tsx')
const seen = new Set()
const loaded = new Set(first.flatMap((name) => files(name, seen)).concat('index.html'))
let total = 0
for (const file of loaded) {
  const size = gzipSync(readFileSync(`dist/${file}`)).length
  total += size
  console.log(`${(size / 1024).toFixed(1).padStart(8)} KiB  ${file}`)
}
const kib = total / 1024
console.log(`first load: ${kib.toFixed(1)} KiB gzipped, at most ${LIMIT_KIB}`)
if (kib > LIMIT_KIB) process.exit(1)
