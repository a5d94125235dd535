// Tests the labels on the axis of a chart, and that a value without neighbors is drawn as a point.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { axisOf, pointsAlone } from '../../console/parts/chart-scale.ts'

it.each([
  [null, [0, 0.5, 1]],
  [1, [0, 0.5, 1]],
  [4.4, [0, 2, 4, 6]],
  [26.8, [0, 10, 20, 30]],
  [100, [0, 50, 100]],
])('the axis of a chart with the highest value %s has the labels %j', (high, labels) => {
  expect(axisOf(high)).toEqual(labels)
})

it('the axis of a chart includes the highest value, and stays the same if the highest value rises to the last label', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), high => {
      const labels = axisOf(high)
      expect(labels.at(-1)).toBeGreaterThanOrEqual(high * (1 - 1e-9))
      expect(labels.length).toBeLessThanOrEqual(6)
      expect(axisOf(labels.at(-1) ?? 0)).toEqual(labels)
    }),
  )
})

it('a value in a chart is drawn as a point if its previous and next values are missing', () => {
  expect(pointsAlone([])).toEqual([])
  expect(pointsAlone([0])).toEqual([0])
  expect(pointsAlone([1, null, 2, 3, null, undefined, 4])).toEqual([0, 6])
  expect(pointsAlone([1, 2, 3])).toEqual([])
})
