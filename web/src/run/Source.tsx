import { javascript } from '@codemirror/lang-javascript'
import { yaml } from '@codemirror/lang-yaml'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Range } from '@codemirror/state'
import { Decoration, EditorView, GutterMarker, gutter, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'

interface Props {
  text: string
  language: 'script' | 'yaml'
  /** The lines in which the run waits. */
  lines: number[]
}

class Here extends GutterMarker {
  override toDOM() {
    const mark = document.createElement('span')
    mark.textContent = '▶'
    mark.title = 'the run is here'
    return mark
  }
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.propertyName], color: 'var(--code-word)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: tags.comment, color: 'var(--faint)', fontStyle: 'italic' },
])

const look = EditorView.theme({
  '&': { fontSize: '13px', color: 'var(--text)', backgroundColor: 'var(--surface)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--faint)', border: 'none' },
  '.cm-here': { backgroundColor: 'var(--mark)' },
  '.cm-marks': { width: '1.4em', color: 'var(--accent)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', overflow: 'auto' },
})

/** A workflow's text, with a mark where the run stands. */
export function Source({ text, language, lines }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const places = [...new Set(lines)].sort((a, b) => a - b).join(',')
  useEffect(() => {
    const element = host.current
    if (!element) return
    // In a shadow root the editor's styles are constructed sheets, which the policy allows; in the document they would be inline.
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const view = new EditorView({ parent: root, root, state: stateOf(text, language, places) })
    const first = places ? Number(places.split(',')[0]) : 1
    if (first > 1 && first <= view.state.doc.lines) {
      view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(first).from, { y: 'nearest' }) })
    }
    return () => view.destroy()
  }, [text, language, places])
  return (
    <div>
      {places && (
        <p>
          The run is at line {places.replaceAll(',', ', ')}, marked <span aria-hidden="true">▶</span>.
        </p>
      )}
      <div ref={host} className="source" />
    </div>
  )
}

function stateOf(text: string, language: Props['language'], places: string) {
  const marked = new Set(places.split(',').map(Number))
  const doc = EditorState.create({ doc: text }).doc
  const here: Range<Decoration>[] = [...marked].flatMap((line) =>
    line >= 1 && line <= doc.lines ? [Decoration.line({ class: 'cm-here' }).range(doc.line(line).from)] : [],
  )
  return EditorState.create({
    doc,
    extensions: [
      gutter({
        class: 'cm-marks',
        lineMarker: (view, line) => (marked.has(view.state.doc.lineAt(line.from).number) ? new Here() : null),
        initialSpacer: () => new Here(),
      }),
      lineNumbers(),
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ 'aria-label': 'source', tabindex: '0' }),
      EditorView.decorations.of(Decoration.set(here, true)),
      language === 'yaml' ? yaml() : javascript(),
      syntaxHighlighting(colours),
      look,
    ],
  })
}
