"""Reading the shim's log."""
import json
import os


class JobLog:
    """The records of one log file; empty where there is none. A last line cut short is left out."""

    def __init__(self, path):
        self.records = []
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    self.records.append(json.loads(line))
                except ValueError:
                    pass

    def of_type(self, kind):
        return [record for record in self.records if record.get("type") == kind]

    def last(self, kind, heap=None):
        """The last record of that type (and heap), or an empty one."""
        found = [record for record in self.of_type(kind) if heap is None or record.get("heap") == heap]
        return found[-1] if found else {}

    def setting(self, name):
        start = self.last("start")
        return start.get("config", {}).get(name, {}).get("value")

    def allocations(self):
        """How many requests each kind of heap served."""
        return {record["heap"]: record["allocations"] for record in self.of_type("exit")}
