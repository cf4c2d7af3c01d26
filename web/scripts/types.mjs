// The types of the API, from the document the server is tested against: a changed API breaks the build.
import { readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const document = JSON.parse(readFileSync('../crates/server/openapi.json', 'utf8'))
for (const path of Object.values(document.paths)) {
  for (const operation of Object.values(path)) {
    // Several routes share one (`view`, `page`), and types are named after them.
    delete operation.operationId
  }
}
writeFileSync('src/api/schema.d.ts', astToString(await openapiTS(document)))
