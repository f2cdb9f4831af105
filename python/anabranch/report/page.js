"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(element(id).textContent);
  const checked = (name) =>
    new Set([...document.querySelectorAll(`input[name="${name}"]:checked`)].map((box) => Number(box.value)));

  function paint(plot) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = (name) => ({
      [`${name}.gridcolor`]: colour("--line"),
      [`${name}.linecolor`]: colour("--faint"),
      [`${name}.zerolinecolor`]: colour("--faint"),
    });
    return Plotly.relayout(plot, { "font.color": colour("--text"), ...axis("xaxis"), ...axis("yaxis") });
  }

  function whenThemeChanges(plot) {
    paint(plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(plot));
  }

  function seriesControls(plot) {
    const choices = read("series-choices");
    const quantity = element("quantity");
    const view = element("view");
    const from = element("from");
    const to = element("to");
    const boxes = [...document.querySelectorAll('input[name="subject"]')];

    function show() {
      const number = Number(quantity.value);
      const subjects = checked("subject");
      const variants = choices.variants.length > 1 ? checked("variant") : new Set([0]);
      const visible = choices.traces.map(
        ([of, subject, variant, seen]) =>
          of === number && subjects.has(subject) && variants.has(variant) &&
          (seen === "both" || seen === view.value),
      );
      Plotly.update(plot, { visible }, { "yaxis.title.text": choices.quantities[number].axis, "yaxis.autorange": true });
    }

    function offer() {
      const has = new Set(choices.quantities[Number(quantity.value)].subjects);
      for (const box of boxes) {
        box.closest("label").hidden = !has.has(Number(box.value));
      }
      const offered = boxes.filter((box) => has.has(Number(box.value)));
      if (!offered.some((box) => box.checked)) {
        // Where not all fit, none but those of the first's kind: a connection, but not some of its subflows.
        const kind = (box) => choices.subjects[Number(box.value)].split("/").length;
        const few = offered.length <= choices.first ? offered : offered.filter((box) => kind(box) === kind(offered[0]));
        for (const box of few.slice(0, choices.first)) box.checked = true;
      }
      show();
    }

    function zoom() {
      const range = [from.valueAsNumber, to.valueAsNumber];
      if (range[0] < range[1]) Plotly.relayout(plot, { "xaxis.range": range });
    }

    function tell() {
      const [low, high] = plot.layout.xaxis.range;
      from.value = Number(low.toPrecision(6));
      to.value = Number(high.toPrecision(6));
    }

    quantity.addEventListener("change", offer);
    view.addEventListener("change", show);
    for (const box of document.querySelectorAll('input[name="subject"], input[name="variant"]')) {
      box.addEventListener("change", show);
    }
    from.addEventListener("change", zoom);
    to.addEventListener("change", zoom);
    element("whole").addEventListener("click", () =>
      Plotly.relayout(plot, { "xaxis.range": [0, choices.end_s], "yaxis.autorange": true }),
    );
    plot.on("plotly_relayout", tell);
    offer();
    tell();
  }

  function figureControls(plot) {
    const choices = read("figures-choices").figures;
    const choice = element("figure");

    function show() {
      const { axis, height, first, count } = choices[Number(choice.value)];
      const visible = plot.data.map((_, at) => first <= at && at < first + count);
      Plotly.update(plot, { visible }, { "xaxis.title.text": axis, height, "xaxis.autorange": true });
    }

    choice.addEventListener("change", show);
    show();
  }

  const start = { series: seriesControls, figures: figureControls };
  for (const [id, controls] of Object.entries(start)) {
    const plot = element(id);
    if (plot) {
      whenThemeChanges(plot);
      controls(plot);
    }
  }
})();
