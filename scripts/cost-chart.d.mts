export function costCharts(page: string): { light: string; dark: string }
