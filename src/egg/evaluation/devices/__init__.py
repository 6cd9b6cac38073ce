"""The devices that workers compute on, as the harness needs them: memory, order, time. One file a kind."""
