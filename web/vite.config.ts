import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { policy } from './scripts/policy.mjs'

// Where `outlast serve` listens while the page is worked on.
const server = process.env.OUTLAST_URL ?? 'http://127.0.0.1:7117'
const proxy = Object.fromEntries(
  ['/api', '/callbacks', '/metrics', '/healthz', '/readyz', '/openapi.json'].map((path) => [path, { target: server }]),
)

export default defineConfig({
  plugins: [react()],
  build: {
    // Nothing inline: the policy of the server forbids `data:` too.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    target: 'es2022',
  },
  server: { proxy, host: '127.0.0.1' },
  preview: { proxy, host: '127.0.0.1', headers: { 'Content-Security-Policy': policy } },
})
