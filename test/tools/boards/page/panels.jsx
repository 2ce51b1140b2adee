// Panels: Grafana's parts with the settings that Grafana's own panels give them.
import { Component, useEffect, useLayoutEffect, useMemo, useState } from 'react';
import {
  EventBusSrv,
  FieldType,
  applyNullInsertThreshold,
  getDisplayValueAlignmentFactors,
  getFieldDisplayName,
  getFieldDisplayValues,
  nullToValue,
} from '@grafana/data';
import { BarGauge, BigValue, Icon, PanelChrome, PanelContextProvider, Table, TimeSeries, VizRepeater, useTheme2 } from '@grafana/ui';
import { configure, fieldConfig, transform } from './fields.js';
import { runQueries } from './queries.js';
import { interpolate } from './variables.js';
import { AlertList, Heatmap, Message, StateTimeline, Text, TimeSeriesMarks, alertQuery } from './drawn.jsx';
import { begin, end } from './progress.js';

const context = { eventsScope: 'board', eventBus: new EventBusSrv(), sync: () => 0, canAddAnnotations: () => false };
const DEFAULT_NO_DATA = 'No data';

function isEmpty(frames) {
  return !frames.some((frame) => frame.fields.some((field) => field.type !== FieldType.time && field.values.some((value) => value !== null && value !== undefined && !Number.isNaN(value))));
}

// reduce makes the values of a stat or a bar gauge.
function reduce(props, sparkline = false) {
  return getFieldDisplayValues({
    fieldConfig: props.config,
    reduceOptions: { values: false, fields: '', ...props.panel.options.reduceOptions },
    replaceVariables: props.replace,
    theme: props.theme,
    data: props.frames,
    sparkline,
    timeZone: 'utc',
  });
}

function Stat(props) {
  const { panel, config, width, height, theme, frames } = props;
  const { options } = panel;
  const textMode = options.textMode === 'auto' && (config.defaults.displayName || !panel.title) ? 'value_and_name' : options.textMode;
  return (
    <VizRepeater
      getValues={() => reduce(props, options.graphMode !== 'none')}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={({ value, alignmentFactors, width: itemWidth, height: itemHeight, count }) => (
        <BigValue
          value={value.display}
          count={count}
          sparkline={value.sparkline}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          textMode={textMode}
          alignmentFactors={alignmentFactors}
          text={options.text}
          width={itemWidth}
          height={itemHeight}
          theme={theme}
          disableWideLayout={!options.wideLayout}
          percentChangeColorMode={options.percentChangeColorMode}
        />
      )}
      width={width}
      height={height}
      source={frames}
      itemSpacing={8}
      autoGrid
      orientation={options.orientation || 'auto'}
    />
  );
}

function BarGauges(props) {
  const { panel, config, width, height, theme, frames } = props;
  const { options } = panel;
  const manual = options.sizing === 'manual';
  return (
    <VizRepeater
      getValues={() => reduce(props)}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={({ value, alignmentFactors, orientation, width: itemWidth, height: itemHeight, count }) => (
        <BarGauge
          value={count === 1 && !config.defaults.displayName ? { ...value.display, title: undefined } : value.display}
          width={itemWidth}
          height={itemHeight}
          orientation={orientation}
          field={value.field}
          text={options.text}
          display={value.view?.getFieldDisplayProcessor(value.colIndex)}
          theme={theme}
          itemSpacing={options.displayMode === 'lcd' ? 2 : 10}
          displayMode={options.displayMode}
          alignmentFactors={count > 1 ? alignmentFactors : undefined}
          showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode}
          namePlacement={options.namePlacement}
          isOverflow={false}
        />
      )}
      width={width}
      height={height}
      source={frames}
      maxVizHeight={manual ? options.maxVizHeight : 300}
      minVizWidth={manual ? options.minVizWidth : 8}
      minVizHeight={manual ? options.minVizHeight : 16}
      itemSpacing={options.displayMode === 'lcd' ? 2 : 10}
      orientation={options.orientation || 'auto'}
    />
  );
}

function Tables({ panel, frames, config, width, height, range }) {
  const { options } = panel;
  const frame = frames[options.frameIndex ?? 0];
  if (!frame || frame.fields.length === 0) {
    return <Message text={config.defaults.noValue ?? DEFAULT_NO_DATA} width={width} height={height} />;
  }
  // Names are kept in the fields, and the table reads them there.
  frame.fields.forEach((field) => getFieldDisplayName(field, frame, frames));
  return (
    <Table
      height={height}
      width={width}
      data={frame}
      noHeader={!options.showHeader}
      showTypeIcons={options.showTypeIcons}
      resizable
      initialSortBy={options.sortBy}
      footerOptions={options.footer}
      enablePagination={options.footer?.enablePagination}
      cellHeight={options.cellHeight}
      onCellFilterAdded={() => {}}
      timeRange={timeRange(range)}
      fieldConfig={config}
    />
  );
}

function timeRange(range) {
  return { from: range.start, to: range.end, raw: { from: range.start, to: range.end } };
}

function Lines({ panel, frames, config, width, height, range, theme, marks }) {
  const prepared = useMemo(
    () =>
      frames
        .filter((frame) => frame.length > 0 && frame.fields.some((field) => field.type === FieldType.number))
        // Else gaps are drawn in the first series alone.
        .map((frame) => nullToValue(applyNullInsertThreshold({ frame, refFieldPseudoMin: range.from, refFieldPseudoMax: range.to }))),
    [frames]
  );
  if (prepared.length === 0) {
    return <Message text={config.defaults.noValue ?? DEFAULT_NO_DATA} width={width} height={height} />;
  }
  return (
    <PanelContextProvider value={context}>
      <TimeSeries
        frames={prepared}
        structureRev={1}
        timeRange={timeRange(range)}
        timeZone="utc"
        width={width}
        height={height}
        legend={panel.options.legend}
        options={panel.options}
        theme={theme}
      >
        {(builder) => <TimeSeriesMarks builder={builder} marks={marks} theme={theme} />}
      </TimeSeries>
    </PanelContextProvider>
  );
}

// kinds are the types of panels that are drawn. A gauge is not: Grafana's part needs a
// library that only its server has.
const kinds = {
  stat: Stat,
  bargauge: BarGauges,
  table: Tables,
  timeseries: Lines,
  'state-timeline': StateTimeline,
  heatmap: Heatmap,
  text: Text,
  alertlist: AlertList,
};

// hasNoPadding has the panels that fill their frame.
const hasNoPadding = new Set(['table']);

// Guard shows the error of a part that cannot be drawn in its panel alone.
class Guard extends Component {
  state = {};

  static getDerivedStateFromError(error) {
    return { error };
  }

  render() {
    const { error } = this.state;
    return error ? <div className="part-error">{String(error.message)}</div> : this.props.children;
  }
}

// countRows returns how many rows a table has in all.
function countRows(panel, frames) {
  return panel.type === 'table' ? (frames[panel.options.frameIndex ?? 0]?.length ?? 0) : '';
}

/** One panel: its queries, its transformations, and what is drawn of them. */
export function Panel({ panel, width, height, range, variables, scoped, marks }) {
  const theme = useTheme2();
  const [state, setState] = useState();
  const replace = (text, more) => interpolate(text, variables, { ...scoped, ...more });
  const config = useMemo(() => fieldConfig(panel), [panel]);
  useEffect(() => {
    begin();
    draw().then(setState, (error) => setState({ frames: [], errors: [error.message] }));
    async function draw() {
      if (!kinds[panel.type]) {
        throw new Error(`panels of the type ${panel.type} are not drawn`);
      }
      const source = panel.type === 'alertlist' ? { ...panel, targets: [alertQuery] } : panel;
      const { frames, errors } = await runQueries(source, range, Math.floor(width), variables, scoped);
      const transformed = await transform(panel, frames, replace);
      return { errors, frames: configure(config, transformed, theme, replace) };
    }
  }, []);
  useLayoutEffect(() => {
    if (state) {
      end();
    }
  }, [state]);
  const Kind = kinds[panel.type];
  const title = replace(panel.title);
  const problems = state?.errors ?? [];
  return (
    <div
      className="panel"
      data-title={title}
      data-type={panel.type}
      data-empty={state ? panel.type !== 'text' && isEmpty(state.frames) : ''}
      data-rows={state ? countRows(panel, state.frames) : ''}
      data-errors={JSON.stringify(problems)}
    >
      <PanelChrome
        title={title}
        description={panel.description}
        width={width}
        height={height}
        padding={hasNoPadding.has(panel.type) ? 'none' : 'md'}
        statusMessage={problems.length > 0 ? problems.join('\n') : undefined}
        titleItems={(panel.links ?? []).map((link) => (
          <PanelChrome.TitleItem key={link.title} href="#" title={link.title}>
            <Icon name="external-link-alt" size="md" />
          </PanelChrome.TitleItem>
        ))}
      >
        {(innerWidth, innerHeight) =>
          state &&
          Kind && (
            <Guard>
              <Kind panel={panel} config={config} frames={state.frames} width={innerWidth} height={innerHeight} range={range} theme={theme} marks={marks} replace={replace} />
            </Guard>
          )
        }
      </PanelChrome>
    </div>
  );
}
