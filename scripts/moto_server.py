#!/usr/bin/env python3
"""moto's S3 server on loopback, one request at a time: moto_server.py PORT

moto looks whether an object exists and then writes it, in threads. On a busy machine two of eight creates of one name
succeeded, which no S3 does and the self-test of a storage rightly refuses. Needs `moto[server]`.
"""

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


def main(port: int) -> None:
    app = DomainDispatcherApplication(create_backend_app)
    turn = threading.Lock()

    def one_at_a_time(environment, start_response):
        with turn:
            return app(environment, start_response)

    run_simple("127.0.0.1", port, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]))
