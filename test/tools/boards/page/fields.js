// What Grafana's server fills and its libraries leave empty: the registry of
// transformations, and the properties that a field's configuration may have.
import {
  FieldConfigOptionsRegistry,
  FieldType,
  applyFieldOverrides,
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardTransformers,
  standardTransformersRegistry,
  stringOverrideProcessor,
  thresholdsOverrideProcessor,
  transformDataFrame,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import { lastValueFrom, map } from 'rxjs';

// partitionByValues is a transformation of Grafana's server side of the page, which
// no library exports: one frame for each combination of values.
const partitionByValues = {
  id: 'partitionByValues',
  name: 'Partition by values',
  operator: (options) => (source) => source.pipe(map((frames) => frames.flatMap((frame) => partition(frame, options)))),
};

function partition(frame, options) {
  const keys = options.fields.map((name) => frame.fields.find((field) => field.name === name)).filter(Boolean);
  const groups = new Map();
  for (let row = 0; row < frame.length; row++) {
    const key = JSON.stringify(keys.map((field) => field.values[row]));
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()].map((rows) => {
    const labels = Object.fromEntries(keys.map((field) => [field.name, field.values[rows[0]]]));
    const fields = frame.fields
      .filter((field) => options.keepFields || !keys.includes(field))
      .map((field) => ({
        ...field,
        state: undefined,
        labels: field.type === FieldType.time ? undefined : labels,
        values: rows.map((row) => field.values[row]),
      }));
    return { ...frame, fields, length: rows.length };
  });
}

standardTransformersRegistry.setInit(() => {
  // seriesToColumns is another name of joinByField: an identity stands once.
  const known = new Map(Object.values(standardTransformers).map((transformation) => [transformation.id, transformation]));
  known.set(partitionByValues.id, partitionByValues);
  return [...known.values()].map((transformation) => ({ id: transformation.id, name: transformation.name, transformation }));
});

/** Applies the panel's transformations in their order. */
export function transform(panel, frames, interpolate) {
  const steps = (panel.transformations ?? []).filter((step) => !step.disabled);
  return lastValueFrom(transformDataFrame(steps, frames, { interpolate }));
}

const numeric = (field) => field.type === FieldType.number;
const always = () => true;

const standardProperties = [
  ['unit', unitOverrideProcessor, always],
  ['min', numberOverrideProcessor, numeric],
  ['max', numberOverrideProcessor, numeric],
  ['fieldMinMax', identityOverrideProcessor, numeric],
  ['decimals', numberOverrideProcessor, numeric],
  ['displayName', displayNameOverrideProcessor, always, { expandTemplateVars: true }],
  ['noValue', stringOverrideProcessor, always],
  ['color', identityOverrideProcessor, always],
  ['thresholds', thresholdsOverrideProcessor, always],
  ['mappings', valueMappingsOverrideProcessor, always],
  ['links', dataLinksOverrideProcessor, always],
];

// customDefaults are those of the panels of Grafana 11 (public/app/plugins/panel).
const customDefaults = {
  timeseries: {
    drawStyle: 'line',
    lineInterpolation: 'linear',
    lineWidth: 1,
    fillOpacity: 0,
    gradientMode: 'none',
    spanNulls: false,
    showPoints: 'auto',
    pointSize: 5,
    axisPlacement: 'auto',
    axisColorMode: 'text',
    axisCenteredZero: false,
    scaleDistribution: { type: 'linear' },
    barAlignment: 0,
    barWidthFactor: 0.6,
    stacking: { mode: 'none', group: 'A' },
    thresholdsStyle: { mode: 'off' },
    hideFrom: { legend: false, tooltip: false, viz: false },
  },
  table: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false },
};

// defaultThresholds are what a panel has that names none.
const defaultThresholds = {
  mode: 'absolute',
  steps: [
    { value: -Infinity, color: 'green' },
    { value: 80, color: 'red' },
  ],
};

/** Returns the panel's field configuration with the defaults of its type. */
export function fieldConfig(panel) {
  const given = panel.fieldConfig ?? {};
  const defaults = {
    color: { mode: panel.type === 'timeseries' ? 'palette-classic' : 'thresholds' },
    thresholds: defaultThresholds,
    ...structuredClone(given.defaults ?? {}),
  };
  defaults.custom = { ...customDefaults[panel.type], ...defaults.custom };
  return { defaults, overrides: structuredClone(given.overrides ?? []) };
}

function registry(config) {
  const options = new FieldConfigOptionsRegistry();
  for (const [id, process, shouldApply, settings] of standardProperties) {
    options.register({ id, path: id, name: id, process, shouldApply, settings, isCustom: false });
  }
  const custom = new Set(Object.keys(config.defaults.custom));
  for (const override of config.overrides) {
    for (const property of override.properties) {
      if (property.id.startsWith('custom.')) {
        custom.add(property.id.slice('custom.'.length));
      }
    }
  }
  for (const path of custom) {
    options.register({ id: `custom.${path}`, path, name: path, process: identityOverrideProcessor, shouldApply: always, isCustom: true });
  }
  return options;
}

/** Returns the frames with the panel's units, colours, names and links. */
export function configure(config, frames, theme, interpolate) {
  return applyFieldOverrides({
    data: frames,
    fieldConfig: config,
    fieldConfigRegistry: registry(config),
    replaceVariables: interpolate,
    theme,
    timeZone: 'utc',
  });
}
