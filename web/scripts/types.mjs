// The types of the API, from the document the server is tested against: a changed API breaks the build.
import { readFileSync, writeFileSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const document = JSON.parse(readFileSync('../crates/server/openapi.json', 'utf8'))
writeFileSync('src/api/schema.d.ts', astToString(await openapiTS(document)))
