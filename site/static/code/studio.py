# What a studio's page draws, as plain data.
# Change an argument of State and run again.
from servelab.view.metric import Metric
from studios.kv_desk.view import State, view

state = State()
frame = view(state, {})

print(frame.headline)
for panel in frame.panels:
    if isinstance(panel, Metric) and panel.value is not None:
        print(f"{panel.title}: {panel.value:,.{panel.digits}f} {panel.unit} ({panel.basis})")
    else:
        print(f"{panel.title}: a {panel.kind} panel")
