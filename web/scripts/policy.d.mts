export declare const policy: string
