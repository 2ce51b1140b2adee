// Variables of a dashboard: their values in Prometheus, and texts that name them.
import { getFieldDisplayName, formattedValueToString } from '@grafana/data';

const ALL = '$__all';
const reference = /\$\{([^}:]+)(?::(\w+))?\}|\$(\w+)/g;

/**
 * Asks for the values of each variable, in the order of the board, because one may
 * name another. A chosen value wins over the board's, as in Grafana's URLs.
 */
export async function loadVariables(board, range, chosen, labelValues) {
  const variables = new Map();
  for (const model of board.templating?.list ?? []) {
    if (model.type === 'datasource') {
      variables.set(model.name, { ...model, options: ['prometheus'], value: 'prometheus' });
      continue;
    }
    if (model.type !== 'query') {
      throw new Error(`variable ${model.name}: the type ${model.type} is not known`);
    }
    const query = interpolate(model.query.query ?? model.query, variables, {}, prometheusFormat);
    const options = await labelValues(query, range);
    options.sort(new Intl.Collator('en', { numeric: true, sensitivity: 'base' }).compare);
    variables.set(model.name, { ...model, options, value: value(model, options, chosen.getAll(`var-${model.name}`)) });
  }
  return variables;
}

function value(model, options, chosen) {
  if (chosen.length > 0) {
    return model.multi ? chosen : chosen[0];
  }
  const current = [model.current?.value ?? []].flat();
  if (model.includeAll && (current.includes(ALL) || current.length === 0)) {
    return ALL;
  }
  const first = current.filter((text) => options.includes(text));
  const values = first.length > 0 ? first : options.slice(0, 1);
  return model.multi ? values : (values[0] ?? '');
}

/** Returns the values that a variable stands for, All expanded. */
export function values(variable) {
  return variable.value === ALL ? variable.options : [variable.value].flat();
}

/** Returns the text that the page's head shows for a variable. */
export function label(variable) {
  return variable.value === ALL ? 'All' : [variable.value].flat().join(' + ');
}

const escapeText = (text) => text.replace(/\\/g, '\\\\').replace(/"/g, '\\"');
const escapeRegex = (text) => text.replace(/\\/g, '\\\\\\\\').replace(/[$^*{}[\]+?.()|]/g, '\\\\$&').replace(/"/g, '\\"');

/** The format of Grafana's Prometheus source: a regular expression if several values are possible. */
export function prometheusFormat(variable) {
  if (variable.value === ALL && variable.allValue) {
    return variable.allValue;
  }
  if (!variable.multi && !variable.includeAll) {
    return escapeText(String(variable.value));
  }
  const escaped = values(variable).map(escapeRegex);
  return escaped.length === 1 ? escaped[0] : `(${escaped.join('|')})`;
}

const formats = {
  raw: (variable) => values(variable).join(','),
  csv: (variable) => values(variable).join(','),
  percentencode: (variable) => encodeURIComponent(values(variable).join(',')),
  queryparam: (variable) =>
    (variable.value === ALL ? [ALL] : values(variable)).map((text) => `var-${variable.name}=${encodeURIComponent(text)}`).join('&'),
};

/**
 * Replaces variables in a text. scoped has values that are known in one place only:
 * those of a repeated row, of the range, of a table's row. What is unknown stays.
 */
export function interpolate(text, variables, scoped = {}, format = formats.csv) {
  if (typeof text !== 'string') {
    return text;
  }
  return text.replace(reference, (whole, braced, name, plain) => {
    const path = braced ?? plain;
    if (path in scoped && path !== '__dataContext') {
      return [scoped[path].value ?? scoped[path]].flat().join(',');
    }
    const found = fieldValue(path, scoped.__dataContext?.value);
    if (found !== undefined) {
      return name === 'percentencode' ? encodeURIComponent(found) : found;
    }
    const variable = variables.get(path);
    if (!variable) {
      return whole;
    }
    return name ? (formats[name] ?? format)(variable) : format(variable);
  });
}

// fieldValue reads __field.labels.x, __data.fields["x"] and __value.text of a cell.
function fieldValue(path, context) {
  if (!context) {
    return undefined;
  }
  const labels = path.match(/^__field\.labels\.(.+)$/);
  if (labels) {
    return context.field.labels?.[labels[1]] ?? '';
  }
  const column = path.match(/^__data\.fields\["?([^"\]]+)"?\]$/);
  if (column && context.rowIndex !== undefined) {
    const field = context.frame.fields.find((each) => getFieldDisplayName(each, context.frame, context.data) === column[1]);
    const raw = field?.values[context.rowIndex];
    return field ? (field.display ? formattedValueToString(field.display(raw)) : String(raw)) : '';
  }
  return path === '__url_time_range' ? '' : undefined;
}
