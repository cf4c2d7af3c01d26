const KEY = 'outlast.theme'

export type Theme = 'system' | 'light' | 'dark'

export const theme = (): Theme => (localStorage.getItem(KEY) as Theme | null) ?? 'system'

export function applyTheme(chosen: Theme = theme()) {
  localStorage.setItem(KEY, chosen)
  if (chosen === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}
