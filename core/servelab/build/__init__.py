"""The build room: from the core, the receipts and the studios to static pages. Used by build.py only, never shipped.

    core, studios ──precompile──▶ wheel ─┐
    npm pyodide ──precompile──▶ stdlib ──┼─▶ runtime (+ memory snapshot) ─┐
    site/static, npm vendors ────────────┴─▶ assets by content hash ──────┼─▶ pages ─▶ dist/site, dist/spaces/<slug>
    receipts, studios' first frames ──────────────────────────────────────┘

It assembles and never measures: every number on a page comes from a receipt or from a studio's `view`. The same commit
under the same Python and Node gives the same bytes.
"""
