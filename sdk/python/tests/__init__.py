import logging

# What goes wrong on purpose need not be shown.
logging.getLogger("outlast").addHandler(logging.NullHandler())
logging.getLogger("outlast").propagate = False
