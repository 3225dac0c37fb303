schema: '1.2'
contents:
  - conditions.fga
  - core.fga
  - tasks.fga
