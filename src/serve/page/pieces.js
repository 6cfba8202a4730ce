// @ts-check
// The pieces, which were drawn for this project. Each has an outline on a plinth, and inner lines in the other color.

/** The plinth below all pieces. */
const PLINTH = "M25 91a4 4 0 0 1-4-4v-2a8 8 0 0 1 8-8h42a8 8 0 0 1 8 8v2a4 4 0 0 1-4 4z";

/**
 * Outlines and inner lines in a square of 100.
 * @type {Record<string, { outline: string, lines: string }>}
 */
const SHAPES = {
  p: {
    outline:
      "M50 19a14.5 14.5 0 0 1 9.6 25.4c3 .9 5.4 2.6 5.4 4.6 0 2.2-2.4 3-5.5 3 .8 10.5 4.5 18 11.5 25h-42c7-7 10.7-14.5 11.5-25-3.1 0-5.5-.8-5.5-3 0-2 2.4-3.7 5.4-4.6a14.5 14.5 0 0 1 9.6-25.4z",
    lines: "M41 52h18",
  },
  r: {
    outline:
      "M25 19a2 2 0 0 1 2-2h8a2 2 0 0 1 2 2v6h8v-6a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v6h8v-6a2 2 0 0 1 2-2h8a2 2 0 0 1 2 2v15.5a4 4 0 0 1-1.2 2.8l-6.8 6.7c0 13 1.5 24 5.5 33h-45c4-9 5.5-20 5.5-33l-6.8-6.7a4 4 0 0 1-1.2-2.8z",
    lines: "M33 44h34M32 67h36",
  },
  n: {
    outline:
      "M31 77c-1.5-14 8-20 14.5-26.5 2-2 3-4.5 3.5-7-4.5 3.5-9.5 3.5-13 6.5-2.5 2.2-4 5.8-7.5 6.5-4 .8-8.5-2-9.3-6.5-.4-2.3.3-4.3 1.5-6.3l7-11.7c1.8-3 2.3-6.5 3.3-9.5l-1-8.5c0-1.8 2-2.5 3.3-1.3l6.7 5.8c1-2.3 2-4.8 3.3-7 .9-1.5 3-1.4 3.7.2l2.5 5.8c18 3 31.5 18 31.5 41.5 0 7.5-1.5 13-4 18z",
    lines: "M55 27c10 5 15.5 17 15 33M31 47.5l-4.5 3",
  },
  b: {
    outline:
      "M50 9a6 6 0 0 1 4.6 9.8c11.9 7.7 17.9 18.2 17.9 28.2 0 6.5-3.5 11-8 14.5.5 6.5 3 11.5 7.5 15.5h-44c4.5-4 7-9 7.5-15.5-4.5-3.5-8-8-8-14.5 0-10 6-20.5 17.9-28.2a6 6 0 0 1 4.6-9.8z",
    lines: "M36 62h28M50 33v16M42 41h16",
  },
  q: {
    outline:
      "M30 77c.5-7-1.5-13-4-19l-7-21.5a5 5 0 1 1 5-1l8.5 10 1.5-18.5a5 5 0 1 1 5.5-.5l7 17 1.2-18.7a5.2 5.2 0 1 1 4.6 0l1.2 18.7 7-17a5 5 0 1 1 5.5.5l1.5 18.5 8.5-10a5 5 0 1 1 5 1l-7 21.5c-2.5 6-4.5 12-4 19z",
    lines: "M28 61.5c14-3.5 30-3.5 44 0M31 69.5c12-2.5 26-2.5 38 0",
  },
  k: {
    outline:
      "M46.5 7h7a1 1 0 0 1 1 1v5h5a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-5v7.5c1.5 1.2 2.7 2.7 3.5 4.5 4-3.5 9.5-4.5 15-2.5 10 3.6 13.5 14.5 8 24.5-4 7.3-8.5 12-9.5 22h-43c-1-10-5.5-14.7-9.5-22-5.5-10-2-20.9 8-24.5 5.5-2 11-1 15 2.5.8-1.8 2-3.3 3.5-4.5v-7.5h-5a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1h5v-5a1 1 0 0 1 1-1z",
    lines: "M30.5 66.5c12-3.5 27-3.5 39 0M50 59c0-11-1.5-18-7.5-25M50 59c0-11 1.5-18 7.5-25",
  },
};

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} name
 * @param {Record<string, string>} attributes
 */
export function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/**
 * @param {string} kind The class of the element.
 * @param {string} d
 * @param {Record<string, string>} [others]
 */
export function path(kind, d, others) {
  return svg("path", { class: kind, d, ...others });
}

/**
 * Returns the picture of a piece, given its letter in a FEN. The style sheet gives the colors.
 * @param {string} letter
 */
export function drawing(letter) {
  const role = letter.toLowerCase();
  const { outline, lines } = SHAPES[role] ?? { outline: "", lines: "" };
  const picture = svg("svg", {
    viewBox: "0 0 100 100",
    class: `drawing ${role === letter ? "black" : "white"}`,
    "aria-hidden": "true",
  });
  picture.append(
    path("outline", `${outline}${PLINTH}`),
    path("lines", lines),
  );
  if (role === "n") picture.append(svg("circle", { class: "eye", cx: "38", cy: "33.5", r: "2.6" }));
  return picture;
}
